"""Stochastic rounding: how a 16-bit weight can lose a thousandth of itself.

A bfloat16 weight times 1 − 10⁻³ rounds back to itself, so that decay of a usual size does nothing.
Rounded up or down at random, with the odds that make the mean exact, it decays as it should.

The random bits are a hash of (update, stream, element) and nothing else; a tensor's stream is four
times its number in the optimizer, and its states have the three after it. So they need no memory,
a resumed run sees the bits it would have seen, and every replica of a weight rounds alike.
"""

import torch
from torch import Tensor

from weightdecay.words import WORD, scramble

SIXTEEN_BIT = (torch.bfloat16, torch.float16)


def round_into(tensor: Tensor, value: Tensor, *, update: int, stream: int) -> None:
    """Write float32 `value` into a 16-bit `tensor`, rounding at random by (update, stream)."""
    noise = random_words(value.numel(), update=update, stream=stream, device=value.device)
    tensor.copy_(stochastic_round(value, noise.view(value.shape), tensor.dtype))


def stochastic_round(value: Tensor, noise: Tensor, dtype: torch.dtype) -> Tensor:
    """Round float32 to a 16-bit dtype, up with a probability equal to the part cut off.

    `noise` holds whole numbers from 0 to 2³² − 1. Infinities and NaN stay what they are.
    """
    if dtype is torch.bfloat16:
        # bfloat16 is the upper half of a float32: add a random lower half, and cut it off.
        bits = value.view(torch.int32) + (noise >> 16).to(torch.int32)
        rounded = (bits & ~0xFFFF).view(torch.float32)
    else:
        # float16 is a grid of 11 significant bits, no finer than 2⁻²⁴. A float32 has 13 bits more:
        # with 13 random bits the sum is exact, and a value on the grid stays where it is.
        exponent = torch.frexp(value).exponent.clamp(min=-13)
        grid = torch.ldexp(torch.ones_like(value), exponent - 11)
        rounded = torch.floor(value / grid + (noise >> 19).float() * 2.0**-13) * grid
    return torch.where(value.isfinite(), rounded, value).to(dtype)


def random_words(numel: int, *, update: int, stream: int, device: torch.device) -> Tensor:
    """Return a 32-bit word for each element, as int64: a hash of its place in the run."""
    seed = scramble(update * 0x9E3779B9 + stream & WORD)
    words: Tensor = scramble(torch.arange(numel, device=device) + seed & WORD)
    return words
