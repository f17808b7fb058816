"""Random 32-bit words that are a hash of their place, and nothing else.

Needing no state, they are the same on every device and in a resumed run. Where a part of the place
is an int64 tensor or array, so is the word: this room need not know torch.
"""

from typing import Any

WORD = 0xFFFFFFFF


def word(*place: Any) -> Any:
    """Return the word of a place such as (seed, update, element)."""
    first, *rest = place
    result = scramble(first & WORD)
    for part in rest:
        # The golden ratio's digits keep (1, 2) and (2, 1) apart.
        result = scramble(result * 0x9E3779B9 + part & WORD)
    return result


def scramble(word: Any) -> Any:
    """Return another word, every bit of which depends on about half of this one's."""
    # A bijection, with the multipliers that C. Wellons' search for the least biased ones found.
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        word = (word ^ (word >> shift)) * factor & WORD
    return word ^ (word >> 15)
