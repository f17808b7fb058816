"""A small convolutional network with batch normalization."""

import torch
from torch import Tensor, nn

from weightdecay import checks
from weightdecay.tasks.models.initial import start_


class ConvNet(nn.Module):
    """Classifies images of at least 8×8 pixels, in stages of 1, 2 and 4 times `width` channels.

    A stage is two 3×3 convolutions, each with a norm and ReLU, then 2×2 max pooling. The remaining
    pixels are averaged.
    """

    def __init__(
        self,
        classes: int,
        *,
        channels: int = 3,
        width: int = 64,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        checks.whole("classes", classes, at_least=2)
        checks.whole("channels", channels, at_least=1)
        checks.whole("width", width, at_least=1)
        layers: list[nn.Module] = []
        before = channels
        with torch.device("meta"):
            for after in (width, 2 * width, 4 * width):
                layers += *_convolution(before, after), *_convolution(after, after), nn.MaxPool2d(2)
                before = after
            self.head = nn.Linear(before, classes)
        self.stages = nn.Sequential(*layers)
        start_(self, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.stages(inputs).mean((2, 3)))
        return logits


def _convolution(before: int, after: int) -> tuple[nn.Module, nn.Module, nn.Module]:
    return nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()
