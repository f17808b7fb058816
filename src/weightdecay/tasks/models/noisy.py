"""Models that draw random numbers during training."""

from abc import abstractmethod

import torch
from torch import Tensor, nn


class Noisy(nn.Module):
    """A model whose forward pass draws all random numbers first, then computes without any.

    `draw` takes them from `generator`, which must be on the inputs' device; None means torch's own.
    The generator is not part of the state: replace it when you move the model. `compute` is the
    rest. It can be compiled as a whole and captured in a CUDA graph.
    """

    def __init__(self, generator: torch.Generator | None) -> None:
        super().__init__()
        self.generator = generator

    @abstractmethod
    def draw(self, inputs: Tensor) -> Tensor:
        """Return the noise of one forward pass; in evaluation mode, its mean."""

    @abstractmethod
    def compute(self, inputs: Tensor, noise: Tensor) -> Tensor:
        """Return the outputs for this noise."""

    def forward(self, inputs: Tensor) -> Tensor:
        return self.compute(inputs, self.draw(inputs))

    def uniform(self, *shape: int, device: torch.device) -> Tensor:
        """Draw numbers from [0, 1)."""
        generator = self.generator
        if generator is not None and generator.device.type != device.type:
            raise ValueError(
                f"`generator` must be on the inputs' device, {device.type}, got one on "
                f"{generator.device.type}. Set model.generator = torch.Generator({device.type!r})."
            )
        return torch.rand(shape, generator=generator, device=device)
