"""Images flip, shift and are normalized as the slow, readable reference here says."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from weightdecay.hashing import word
from weightdecay.tasks import images
from weightdecay.tasks.images import Images

COLOUR = Images(mean=(125.3, 123.0, 113.9), deviation=(63.0, 62.1, 66.7))
GREY = Images(mean=(72.94,), deviation=(90.02,), padding=2)


def reference(rule: Images, image: np.ndarray, number: int) -> np.ndarray:
    """Normalize, flip, pad with zeros, cut out: one image, in float64."""
    scale = [np.array(values)[:, None, None] for values in (rule.mean, rule.deviation)]
    normalized = (image - scale[0]) / scale[1]
    if rule.flip and number & 1:
        normalized = normalized[:, :, ::-1]
    pad, places = rule.padding, 2 * rule.padding + 1
    padded = np.pad(normalized, ((0, 0), (pad, pad), (pad, pad)))
    top = (number >> 1 & 0xFFFF) * places // 2**16
    left = (number >> 17 & 0x7FFF) * places // 2**15
    height, width = image.shape[1:]
    return padded[:, top : top + height, left : left + width]


def batch_of(size: int, *shape: int) -> Tensor:
    return torch.randint(0, 256, (size, *shape), dtype=torch.uint8)


@pytest.mark.parametrize(("rule", "shape"), [(COLOUR, (3, 32, 32)), (GREY, (1, 28, 28))])
@given(numbers=st.lists(st.integers(0, 2**32 - 1), max_size=5))
def test_a_batch_is_what_the_reference_makes_of_each_image(
    rule: Images, shape: tuple[int, ...], numbers: list[int]
) -> None:
    batch = batch_of(len(numbers), *shape)
    prepared = rule(batch, torch.tensor(numbers, dtype=torch.int64))
    assert prepared.shape == batch.shape
    assert prepared.dtype == torch.float32
    for image, number, result in zip(batch, numbers, prepared, strict=True):
        expected = reference(rule, image.numpy(), number)
        np.testing.assert_allclose(result.numpy(), expected, atol=1e-5)


def test_without_words_nothing_is_random() -> None:
    batch = batch_of(4, 3, 32, 32)
    mean, deviation = (torch.tensor(v)[:, None, None] for v in (COLOUR.mean, COLOUR.deviation))
    torch.testing.assert_close(COLOUR(batch, None), (batch.float() - mean) / deviation)


def test_every_place_and_both_sides_come_up_equally_often() -> None:
    """One white pixel in the middle of black tells where an image went."""
    rule = Images(mean=(0.0,), deviation=(1.0,), padding=1)
    batch = torch.zeros(20_000, 1, 6, 6, dtype=torch.uint8)
    batch[:, :, 2, 2] = 1
    found = rule(batch, word(7, torch.arange(len(batch)))).sum(0)[0]
    # Flipped, column 2 is column 3; three shifts of each overlap in the middle two columns.
    rows = [0, 1, 1, 1, 0, 0]
    columns = [0, 1, 2, 2, 1, 0]
    expected = torch.tensor(rows)[:, None] * torch.tensor(columns) * len(batch) / 18
    torch.testing.assert_close(found, expected, rtol=0.07, atol=0)


def test_padding_is_zero_after_normalization() -> None:
    prepared = COLOUR(batch_of(1, 3, 32, 32), torch.tensor([0]))
    assert (prepared[:, :, :4] == 0).all()
    assert (prepared[:, :, :, :4] == 0).all()
    assert (prepared[:, :, 4:, 4:] != 0).any()


@pytest.mark.parametrize("words", [None, torch.arange(5)])
def test_the_memory_layout_is_kept_and_changes_no_value(words: Tensor | None) -> None:
    words = None if words is None else word(words.to(torch.get_default_device()))
    batch = batch_of(5, 3, 32, 32)
    plain = COLOUR(batch, words)
    last = COLOUR(batch.contiguous(memory_format=torch.channels_last), words)
    assert plain.is_contiguous()
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(plain, last)


def test_fashion_mnist_is_normalized_and_nothing_else() -> None:
    batch = batch_of(3, 1, 28, 28)
    rule = images.FASHION_MNIST
    assert torch.equal(rule(batch, torch.arange(3)), rule(batch, None))


@pytest.mark.gpu
def test_a_batch_is_prepared_inside_a_cuda_graph() -> None:
    batch, words = batch_of(8, 3, 32, 32), word(torch.arange(8))
    COLOUR(batch, words)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prepared = COLOUR(batch, words)
    batch.copy_(batch_of(8, 3, 32, 32))
    words.copy_(word(torch.arange(8) + 8))
    graph.replay()
    assert torch.equal(prepared, COLOUR(batch, words))
