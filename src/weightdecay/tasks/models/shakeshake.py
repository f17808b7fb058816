"""Shake-Shake 26 2x`width`d, the residual network of the paper's experiments.

Gastaldi, 2017 (arXiv:1705.07485). A block adds α·a + (1 − α)·b to its input, where a and b are its
two branches. In the backward pass they receive β and 1 − β times the gradient.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from weightdecay import checks
from weightdecay.tasks.models.initial import start_
from weightdecay.tasks.models.noisy import Noisy

STEM = 16
BLOCKS = 4  # per stage


class ShakeShake26(Noisy):
    """Classifies images of 3 channels, by 12 blocks in stages of 1, 2 and 4 times `width`.

    In training each block draws its own α and β from [0, 1), for every image or, with
    `shake="batch"`, once per batch. Without `forward`, α is ½. Without `backward`, β is α, so the
    gradient is that of the function computed. Neither changes which numbers are drawn. In
    evaluation both are ½.
    """

    def __init__(
        self,
        width: int = 64,
        classes: int = 10,
        *,
        shake: str = "image",
        forward: bool = True,
        backward: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(generator)
        if checks.whole("width", width, at_least=2) % 2:
            raise ValueError(f"`width` must be even, got {width}. A skip joins two halves of it.")
        checks.whole("classes", classes, at_least=2)
        self.shake = checks.one_of("shake", shake, ("image", "batch"))
        self.shake_forward = checks.flag("forward", forward)
        self.shake_backward = checks.flag("backward", backward)
        with torch.device("meta"):
            self.stem = nn.Sequential(_convolution(3, STEM), nn.BatchNorm2d(STEM))
            self.blocks = nn.ModuleList()
            before = STEM
            for after, stride in ((width, 1), (2 * width, 2), (4 * width, 2)):
                self.blocks.append(_Block(before, after, stride))
                self.blocks.extend(_Block(after, after) for _ in range(BLOCKS - 1))
                before = after
            self.head = nn.Linear(before, classes)
        start_(self, generator)

    def draw(self, inputs: Tensor) -> Tensor:
        """Return α and β as [blocks, 2, images or 1, 1, 1, 1]."""
        blocks = len(self.blocks)
        if not self.training:
            return torch.full((blocks, 2, 1, 1, 1, 1), 0.5, device=inputs.device)
        images = len(inputs) if self.shake == "image" else 1
        drawn = self.uniform(blocks, 2, images, 1, 1, 1, device=inputs.device)
        alpha, beta = drawn.unbind(1)
        if not self.shake_forward:
            alpha = torch.full_like(alpha, 0.5)
        if not self.shake_backward:
            beta = alpha
        return torch.stack((alpha, beta), 1)

    def compute(self, inputs: Tensor, noise: Tensor) -> Tensor:
        x: Tensor = self.stem(inputs)
        for block, pair in zip(self.blocks, noise.to(x.dtype).unbind(), strict=True):
            alpha, beta = pair.unbind()
            x = block(x, alpha, beta)
        logits: Tensor = self.head(x.relu().mean((2, 3)))
        return logits


class _Block(nn.Module):
    def __init__(self, before: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.skip = None if before == width else _Skip(before, width, stride)
        self.one = _branch(before, width, stride)
        self.other = _branch(before, width, stride)

    def forward(self, x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
        active = x.relu()
        one, other = self.one(active), self.other(active)
        mixed: Tensor = _Shake.apply(one, other, alpha, beta)  # type: ignore[no-untyped-call]
        return mixed + (x if self.skip is None else self.skip(active))


class _Skip(nn.Module):
    """Half of the channels from every `stride`-th pixel, half from its upper left neighbour.

    The neighbours come from the image shifted one pixel right and down, with zeros shifted in.
    """

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.here = nn.Conv2d(before, width // 2, 1, stride, bias=False)
        self.shifted = nn.Conv2d(before, width // 2, 1, stride, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, active: Tensor) -> Tensor:
        shifted = functional.pad(active, (1, -1, 1, -1))
        joined: Tensor = self.norm(torch.cat((self.here(active), self.shifted(shifted)), 1))
        return joined


class _Shake(torch.autograd.Function):
    """Mixes two branches by α, and divides the gradient between them by β."""

    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
        ctx.save_for_backward(beta)
        return torch.lerp(other, one, alpha)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (beta,) = ctx.saved_tensors
        share = beta * grad
        return share, grad - share, None, None


def _branch(before: int, width: int, stride: int) -> nn.Sequential:
    """Build a branch without its first ReLU, which both branches and the skip share."""
    return nn.Sequential(
        _convolution(before, width, stride),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        _convolution(width, width),
        nn.BatchNorm2d(width),
    )


def _convolution(before: int, width: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
