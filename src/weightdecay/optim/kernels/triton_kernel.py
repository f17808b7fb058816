"""The multi-tensor kernel: each program updates one block of one tensor. Its inputs are tables:

    blocks   [block, 2]           which tensor, and which block of it
    tensors  [12, tensor]         pointers to param, grad, up to three states and compensation;
                                  length, class and rounding key; length, pitch and first element
                                  of the rows of the whole parameter that a shard holds
    rows     [row, class, WIDTH]  an update's numbers; a class is a group and a count of updates
    cursor   [1]                  the row to read: 0, except in a CUDA graph
    applied  [class, APPLIED]     output: the numbers that the last update used

So a hundred groups cost no more than one, and nothing is recompiled when a number changes.
Arithmetic is in float32 in the order of the reference, with exactly rounded division and root.
"""

import torch
import triton
import triton.language as tl

TYPES = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
INTERPRETED = bool(triton.knobs.runtime.interpret)
VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
# Numbers of a row: α·η, λ·η, L2, 1 − β₁ or momentum, 1 − β₂, ε, 1/(1 − β₁ᵗ), 1/(1 − β₂ᵗ), ±1 for
# the gradient's sign, and t as the bits of an int32: it seeds the rounding of 16-bit values.
WIDTH = 16  # numbers per row, padded to half a cache line
# The numbers that the kernel records of the row it used, per class: α·η, λ·η, L2 and t.
APPLIED = 4


@triton.jit
def scramble(word):
    """The same as hashing.scramble, on 32-bit words."""
    word = (word ^ (word >> 16)) * 0x21F0AAAD
    word = (word ^ (word >> 15)) * 0x735A2D97
    return word ^ (word >> 15)


@triton.jit
def rounded(value, element, update, stream, DTYPE: tl.constexpr):
    """The same as rounding.stochastic_round, for the words of (update, stream, element)."""
    if tl.float32 == DTYPE:
        return value
    seed = scramble((update * 0x9E3779B9 + stream).to(tl.uint32))
    further = ((element >> 32) * 0x9E3779B9).to(tl.uint32)
    noise = scramble(element.to(tl.uint32) + further + seed)
    bits = value.to(tl.uint32, bitcast=True)
    if tl.bfloat16 == DTYPE:
        result = ((bits + (noise >> 16)) & 0xFFFF0000).to(tl.float32, bitcast=True)
    else:
        exponent = tl.maximum(((bits >> 23) & 0xFF).to(tl.int32) - 126, -13) - 11
        grid = ((exponent + 127) << 23).to(tl.float32, bitcast=True)
        inverse = ((127 - exponent) << 23).to(tl.float32, bitcast=True)
        share = (noise >> 19).to(tl.float32) * 0.0001220703125  # 2⁻¹³
        result = tl.floor(value * inverse + share) * grid
    finite = (bits & 0x7F800000) != 0x7F800000
    return tl.where(finite, result, value).to(DTYPE)


@triton.jit
def nearest(value, DTYPE: tl.constexpr):
    if tl.bfloat16 != DTYPE:
        return value.to(DTYPE)
    # Written in bits, since Triton's interpreter truncates where the GPU rounds to nearest.
    bits = value.to(tl.uint32, bitcast=True)
    even = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    finite = (bits & 0x7F800000) != 0x7F800000
    return tl.where(finite, even.to(tl.float32, bitcast=True), value).to(DTYPE)


@triton.jit
def read(pointer, offsets, left, WHOLE: tl.constexpr):
    if WHOLE:
        return tl.load(pointer + offsets).to(tl.float32)
    return tl.load(pointer + offsets, mask=offsets < left, other=0.0).to(tl.float32)


@triton.jit
def write(pointer, offsets, value, left, WHOLE: tl.constexpr):
    if WHOLE:
        tl.store(pointer + offsets, value)
    else:
        tl.store(pointer + offsets, value, mask=offsets < left)


@triton.jit
def numbered(entry, count, origin, offsets, BLOCK: tl.constexpr):
    """The same as shards.Region: the numbers of a block's elements in the whole parameter."""
    length = tl.load(entry + 9 * count)
    pitch = tl.load(entry + 10 * count)
    element = tl.load(entry + 11 * count) + origin + offsets
    if pitch != 0:
        gap = pitch - length
        begun = origin // length
        # The rest of the row that the block starts in; 32 bits then count the rows that follow.
        rest = tl.minimum((begun + 1) * length - origin, BLOCK).to(tl.int32)
        further = (offsets - rest) // tl.minimum(length, BLOCK).to(tl.int32) + 1
        element += (begun + tl.where(offsets < rest, 0, further)) * gap
    return element


@triton.jit
def update_block(
    place,
    pointers,
    row,
    VARIANT: tl.constexpr,
    COMPENSATED: tl.constexpr,
    PARAM_TYPE: tl.constexpr,
    STATE_TYPE: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """Algorithm 1 or 2 on one block of elements."""
    ADAM: tl.constexpr = (VARIANT == "adam") or (VARIANT == "amsgrad")
    offsets, left, element, factor, update, stream = place
    param, grad, first, second, third, rest = pointers
    lr, decay, l2, blend, blend_sq, eps, correction, correction_sq = row
    theta = read(param, offsets, left, WHOLE)
    g = read(grad, offsets, left, WHOLE) * factor
    if VARIANT != "plain":
        m = read(first, offsets, left, WHOLE)
    if ADAM:
        v = read(second, offsets, left, WHOLE)
    if VARIANT == "amsgrad":
        largest = read(third, offsets, left, WHOLE)
    if COMPENSATED:
        theta += read(rest, offsets, left, WHOLE)

    g += l2 * theta  # line 6
    if ADAM:
        m += blend * (g - m)  # line 7
        v += blend_sq * (g * g - v)  # line 8
        square = v
        if VARIANT == "amsgrad":
            largest = tl.maximum(largest, v, propagate_nan=tl.PropagateNan.ALL)
            square = largest
        mean = m * correction  # line 9
        square *= correction_sq  # line 10
        step = lr * tl.div_rn(mean, tl.sqrt_rn(square) + eps)
    else:
        step = lr * g
        if VARIANT != "plain":
            m = blend * m + step  # line 8
            step = step + blend * m if VARIANT == "nesterov" else m
    theta -= step + decay * theta  # Algorithm 1, line 9; Algorithm 2, line 12

    if COMPENSATED:
        kept = nearest(theta, PARAM_TYPE)
        lost = tl.where(tl.abs(theta) < float("inf"), theta - kept.to(tl.float32), 0.0)
        write(rest, offsets, rounded(lost, element, update, stream, PARAM_TYPE), left, WHOLE)
        write(param, offsets, kept, left, WHOLE)
    else:
        write(param, offsets, rounded(theta, element, update, stream, PARAM_TYPE), left, WHOLE)
    if VARIANT != "plain":
        write(first, offsets, rounded(m, element, update, stream + 1, STATE_TYPE), left, WHOLE)
    if ADAM:
        write(second, offsets, rounded(v, element, update, stream + 2, STATE_TYPE), left, WHOLE)
    if VARIANT == "amsgrad":
        top = rounded(largest, element, update, stream + 3, STATE_TYPE)
        write(third, offsets, top, left, WHOLE)


@triton.jit
def update_tensors(
    blocks,
    tensors,
    rows,
    cursor,
    found_inf,
    grad_scale,
    applied,
    count,
    classes,
    ahead,
    VARIANT: tl.constexpr,
    COMPENSATED: tl.constexpr,
    PARAM_TYPE: tl.constexpr,
    GRAD_TYPE: tl.constexpr,
    STATE_TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
    SCALED: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Update one block of one tensor, unless a gradient overflowed or no row is left."""
    program = tl.program_id(0)
    entry = tensors + tl.load(blocks + program * 2)
    origin = tl.load(blocks + program * 2 + 1).to(tl.int64) * BLOCK
    at = tl.load(cursor)
    left = tl.minimum(tl.load(entry + 6 * count) - origin, BLOCK).to(tl.int32)
    left = tl.where(at < ahead, left, 0)
    member = tl.load(entry + 7 * count)
    line = rows + (tl.minimum(at, ahead - 1) * classes + member) * 16
    row = (
        tl.load(line),
        tl.load(line + 1),
        tl.load(line + 2),
        tl.load(line + 3),
        tl.load(line + 4),
        tl.load(line + 5),
        tl.load(line + 6),
        tl.load(line + 7),
    )
    factor = tl.load(line + 8)
    update = tl.load((line + 9).to(tl.pointer_type(tl.uint32)))
    stream = tl.load(entry + 8 * count).to(tl.uint32) * 4
    if SCALED:
        left = tl.where(tl.load(found_inf) == 0, left, 0)
        factor = factor / tl.load(grad_scale)

    if (origin == 0) & (left > 0):  # all programs of a class write the same numbers
        used = applied + member * 4
        tl.store(used, row[0])
        tl.store(used + 1, row[1])
        tl.store(used + 2, row[2])
        tl.store((used + 3).to(tl.pointer_type(tl.uint32)), update)

    param = tl.load(entry).to(tl.pointer_type(PARAM_TYPE)) + origin
    grad = tl.load(entry + count).to(tl.pointer_type(GRAD_TYPE)) + origin
    first = tl.load(entry + 2 * count).to(tl.pointer_type(STATE_TYPE)) + origin
    second = tl.load(entry + 3 * count).to(tl.pointer_type(STATE_TYPE)) + origin
    third = tl.load(entry + 4 * count).to(tl.pointer_type(STATE_TYPE)) + origin
    rest = tl.load(entry + 5 * count).to(tl.pointer_type(PARAM_TYPE)) + origin
    if ALIGNED:
        param = tl.multiple_of(param, 16)
        grad = tl.multiple_of(grad, 16)
        first = tl.multiple_of(first, 16)
        second = tl.multiple_of(second, 16)
        third = tl.multiple_of(third, 16)
        rest = tl.multiple_of(rest, 16)
    pointers = (param, grad, first, second, third, rest)

    offsets = tl.arange(0, BLOCK)
    element = numbered(entry, count, origin, offsets, BLOCK)
    place = (offsets, left, element, factor, update, stream)
    # A full block needs no mask, so it is read and written sixteen bytes at a time.
    if left == BLOCK:
        update_block(place, pointers, row, VARIANT, COMPENSATED, PARAM_TYPE, STATE_TYPE, True)
    elif left > 0:
        update_block(place, pointers, row, VARIANT, COMPENSATED, PARAM_TYPE, STATE_TYPE, False)


@triton.jit
def begin_replay(counts, found_inf, here, there, words, SCALED: tl.constexpr, BLOCK: tl.constexpr):
    """Choose the row of this replay, and count it unless a gradient overflowed.

    The first replay loads the tables from the host's pinned memory.
    """
    made = tl.load(counts + 1)
    start = tl.where(made < 0, 0, words)
    while start < words:
        at = start + tl.arange(0, BLOCK)
        tl.store(there + at, tl.load(here + at, mask=at < words), mask=at < words)
        start += BLOCK
    made = tl.maximum(made, 0)
    taken = 1
    if SCALED:
        taken = tl.where(tl.load(found_inf) == 0, 1, 0)
    tl.store(counts, made)
    tl.store(counts + 1, made + taken)


def launch(compiled, programs, arguments, warps):
    """Launch `update_tensors` and return the compiled kernel, which is cheaper to launch again.

    Triton inspects every argument to find the kernel it has compiled. If nothing it inspects can
    have changed, the compiled kernel is called directly, which saves most of the launch time.
    """
    if compiled is None or INTERPRETED or VERSION < (3, 6):
        return update_tensors[(programs,)](*arguments, num_warps=warps)
    compiled[programs, 1, 1](*arguments)
    return compiled
