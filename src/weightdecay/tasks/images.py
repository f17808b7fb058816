"""From images as bytes to a model's input, on the images' device: flip, crop, normalize.

All of it is tensor arithmetic on one random word per example. Nothing waits for the device and
there is no state, so a batch can be prepared inside a CUDA graph.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Images:
    """Normalize each channel. With random words, also flip half of the images and shift all.

    An image is padded by `padding` pixels, and a crop of its original size is taken at a random
    place. As in the authors' code the flip comes first, and the padding is zero after
    normalization. Means and deviations are those of bytes, 0 to 255.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    flip: bool = True
    padding: int = 4

    def __call__(self, batch: Tensor, words: Tensor | None) -> Tensor:
        layout = _layout(batch)
        if words is None or not (self.flip or self.padding):
            return self._normalized(batch).contiguous(memory_format=layout)
        rows, columns, inside = self._places(words, *batch.shape[-2:])
        image = torch.arange(batch.shape[0], device=batch.device)[:, None, None, None]
        channel = torch.arange(batch.shape[1], device=batch.device)[:, None, None]
        taken = batch[image, channel, rows, columns]
        return (self._normalized(taken) * inside).contiguous(memory_format=layout)

    def _normalized(self, batch: Tensor) -> Tensor:
        mean, deviation = (_column(values, batch) for values in (self.mean, self.deviation))
        return (batch - mean) / deviation

    def _places(self, words: Tensor, height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return each pixel's source row and column, and whether they are inside the image."""
        # A word has 32 bits: one for the flip, 16 for the row, 15 for the column.
        places = 2 * self.padding + 1
        words = words[:, None, None, None]
        down = ((words >> 1 & 0xFFFF) * places >> 16) - self.padding
        right = ((words >> 17 & 0x7FFF) * places >> 15) - self.padding
        rows = torch.arange(height, device=words.device)[:, None] + down
        columns = torch.arange(width, device=words.device) + right
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        if self.flip:
            columns = torch.where((words & 1).bool(), width - 1 - columns, columns)
        return rows.clamp(0, height - 1), columns.clamp(0, width - 1), inside


def _column(values: tuple[float, ...], batch: Tensor) -> Tensor:
    # Filled on the device: a tensor made from a list would be copied there.
    filled = [torch.full((1, 1), value, device=batch.device) for value in values]
    return torch.stack(filled)


def _layout(batch: Tensor) -> torch.memory_format:
    if batch.is_contiguous() or not batch.is_contiguous(memory_format=torch.channels_last):
        return torch.contiguous_format
    return torch.channels_last


CIFAR10 = Images(mean=(125.3, 123.0, 113.9), deviation=(63.0, 62.1, 66.7))
CIFAR100 = Images(mean=(129.3, 124.1, 112.4), deviation=(68.2, 65.4, 70.4))
IMAGENET32 = Images(mean=(122.7, 116.65, 104.0), deviation=(255.0, 255.0, 255.0))
# Normalization only: garments are centred and upright.
FASHION_MNIST = Images(mean=(72.94,), deviation=(90.02,), flip=False, padding=0)
