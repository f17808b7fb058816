"""Random 32-bit words that are a hash of their place, and nothing else.

They need no state, so they are the same on every device and in a resumed run. If a part of the
place is an int64 tensor or array, so is the word. This module does not need torch for that.
"""

from typing import Any

WORD = 0xFFFFFFFF
#: The shifts and factors of `scramble`. The factors come from C. Wellons' search for the least
#: biased ones; the last shift has none.
ROUNDS = ((16, 0x21F0AAAD), (15, 0x735A2D97))
LAST = 15


def word(*place: Any) -> Any:
    """Return the word of a place such as (seed, update, element)."""
    first, *rest = place
    result = scramble(first & WORD)
    for part in rest:
        # The factor, digits of the golden ratio, makes (1, 2) and (2, 1) differ.
        result = scramble(result * 0x9E3779B9 + part & WORD)
    return result


def scramble(word: Any) -> Any:
    """Return another word; each of its bits depends on about half of the bits of this one."""
    for shift, factor in ROUNDS:  # each is a bijection
        word = (word ^ (word >> shift)) * factor & WORD
    return word ^ (word >> LAST)
