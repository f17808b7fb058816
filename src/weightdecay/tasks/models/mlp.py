"""A multilayer perceptron with batch normalization."""

import torch
from torch import Tensor, nn

from weightdecay import checks
from weightdecay.tasks.models.initial import start_


class MLP(nn.Module):
    """Classifies examples of `inputs` numbers, in any shape, by `depth` hidden layers.

    The hidden layers have no bias except that of their norm.
    """

    def __init__(
        self,
        inputs: int,
        classes: int,
        *,
        width: int = 64,
        depth: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        checks.whole("inputs", inputs, at_least=1)
        checks.whole("classes", classes, at_least=2)
        checks.whole("width", width, at_least=1)
        checks.whole("depth", depth, at_least=0)
        layers: list[nn.Module] = [nn.Flatten()]
        before = inputs
        with torch.device("meta"):
            for _ in range(depth):
                layers += nn.Linear(before, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()
                before = width
            layers.append(nn.Linear(before, classes))
        self.layers = nn.Sequential(*layers)
        start_(self, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.layers(inputs)
        return logits
