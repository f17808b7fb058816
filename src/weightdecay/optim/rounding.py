"""Stochastic rounding, so that 16-bit weights can decay by a thousandth.

A bfloat16 weight times 1 − 10⁻³ rounds back to itself, so a decay of a usual size does nothing.
Rounded up or down at random, with probabilities that make the mean exact, it decays as it should.

The random bits are a hash of (update, stream, element) and nothing else. So they need no memory, a
resumed run gets the same bits, and all replicas of a weight are rounded alike. Elements are counted
in the whole parameter, so shards are rounded like the whole.

A parameter's stream is four times its key, and its states have the three streams after it. A key
must be the same however parameters are divided into groups and optimizers. It is a hash of the
parameter's name if the optimizer was given names; otherwise of its shape and its place among the
parameters of that shape. It is kept in the parameter's state, so a checkpoint carries it to any
other division. A state saved without a key gets one at its next update.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from weightdecay.hashing import LAST, ROUNDS, WORD, scramble, word
from weightdecay.optim.shards import Region

SIXTEEN_BIT = (torch.bfloat16, torch.float16)
#: The dtypes that are rounded stochastically; of complex numbers, each part.
ROUNDED = (*SIXTEEN_BIT, torch.complex32)
#: The key of a parameter's state that holds its rounding key.
KEY = "rounding_key"
# Parts that wrappers add to the names of parameters: DDP, torch.compile, FSDP1, checkpointing.
_WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}


def new_keys(groups: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return a rounding key for each parameter of all groups, even if its state has one."""
    keys = []
    seen: Counter[tuple[int, ...]] = Counter()
    for group in groups:
        params, names = group["params"], group.get("param_names", ())
        if len(names) == len(params):
            keys += [crc32(unwrapped(name).encode()) for name in names]
            continue
        for param in params:
            shape = tuple(param.shape)
            keys.append(word(len(shape), *shape, seen[shape]))
            seen[shape] += 1
    return keys


def unwrapped(name: str) -> str:
    """Return a parameter's name without the parts added by wrappers of its model."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def round_into(
    tensor: Tensor, value: Tensor, *, update: int, stream: int, region: Region | None
) -> None:
    """Write a float32 `value` into a 16-bit `tensor` by stochastic rounding.

    `update` and `stream` seed the random bits. `region` says which elements of the whole parameter
    these are; None if they are all.
    """
    if region is None:
        count, short = value.numel(), torch.iinfo(torch.int32)
        dtype = torch.int32 if count <= short.max else torch.int64
        elements = torch.arange(count, dtype=dtype, device=value.device).view(value.shape)
    else:
        elements = region.elements(value.device)
    noise = random_words(elements, update=update, stream=stream)
    tensor.copy_(stochastic_round(value, noise, tensor.dtype))


def stochastic_round(value: Tensor, noise: Tensor, dtype: torch.dtype) -> Tensor:
    """Round float32 to a 16-bit dtype, up with a probability equal to the fraction cut off.

    `noise` holds 32 random bits each, as int32 or int64. Infinities and NaN are kept.
    """
    if dtype is torch.bfloat16:
        # bfloat16 is the upper half of a float32: add a random lower half, then cut it off.
        bits = (noise >> 16).bitwise_and_(0xFFFF).to(torch.int32)
        rounded = bits.add_(value.view(torch.int32)).bitwise_and_(~0xFFFF).view(torch.float32)
    else:
        # float16 has 11 significant bits and no step below 2⁻²⁴. float32 has 13 more bits: with 13
        # random bits the sum is exact, and a value that float16 can represent stays the same.
        exponent = torch.frexp(value).exponent.clamp(min=-13)
        grid = torch.ldexp(torch.ones_like(value), exponent - 11)
        rounded = torch.floor(value / grid + (noise >> 19 & 0x1FFF).float() * 2.0**-13) * grid
    return torch.where(value.isfinite(), rounded, value).to(dtype)


def random_words(elements: Tensor, *, update: int, stream: int) -> Tensor:
    """Return a 32-bit random word for each element, as int32: a hash of update and element.

    It is `hashing.scramble`, in arithmetic that overflows as 32-bit words do: with int64 it took
    six times as long on a CPU.
    """
    seed = scramble(update * 0x9E3779B9 + stream & WORD)
    if elements.dtype is torch.int64:
        # 32-bit words would repeat after 2³² elements, so each block of 2³² has its own offset.
        elements = (elements + (elements >> 32) * 0x9E3779B9).to(torch.int32)
    words: Tensor = elements + (seed - (seed >> 31 << 32))  # the seed as an int32
    for shift, factor in ROUNDS:
        words ^= (words >> shift).bitwise_and_(WORD >> shift)  # a shift that brings in zeros
        words *= factor
    words ^= (words >> LAST).bitwise_and_(WORD >> LAST)
    return words
