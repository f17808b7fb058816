"""Tasks with a loss and a metric of their own: numbers to tell, and pixels to name."""

from functools import cache

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from weightdecay.tasks import Examples, Task, absolute_error, squared_error

CLASSES = 3


def net(width: int = 16, outputs: int = 2, generator: torch.Generator | None = None) -> nn.Module:
    """Return a model that can be mapped over lanes."""
    model = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, outputs))
    return _begun(model, generator)


def _begun(model: nn.Module, generator: torch.Generator | None) -> nn.Module:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3, generator=generator)
    return model


def numbers() -> Task:
    """Two numbers to tell of each of six."""
    draw = torch.Generator("cpu").manual_seed(2)
    points = torch.randn(260, 6, generator=draw, device="cpu")
    noise = 0.1 * torch.randn(260, 2, generator=draw, device="cpu")
    targets = torch.stack([points[:, :3].sum(1).tanh(), points[:, 3] * points[:, 4]], 1) + noise
    return Task(
        name="numbers",
        train=Examples(points[:200], targets[:200]),
        test=Examples(points[200:], targets[200:]),
        models={"net": net},
        loss=squared_error,
        metric=absolute_error,
    )


def convolutions(generator: torch.Generator | None = None) -> nn.Module:
    """Return a model whose outputs have the classes where torch has them: [example, class, …]."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, CLASSES, 1))
    return _begun(model, generator)


def of_pixels(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return every pixel's cross-entropy."""
    return F.cross_entropy(outputs, targets, reduction="none")


def intersection_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return 1 − intersection over union of each image, a mean over its classes."""
    classes = torch.arange(CLASSES, device=targets.device)
    found, true = (
        (named.flatten(1)[:, None] == classes[:, None]) for named in (outputs.argmax(1), targets)
    )
    together, either = (found & true).sum(2), (found | true).sum(2)
    return 1 - torch.where(either > 0, together / either.clamp(min=1), 1.0).mean(1)


def pixels() -> Task:
    """Images of 8 × 8, in which the brightness of a pixel and its neighbours tells its class."""
    draw = torch.Generator("cpu").manual_seed(3)
    images = torch.randn(90, 1, 8, 8, generator=draw, device="cpu")
    around = F.avg_pool2d(images, 3, stride=1, padding=1)[:, 0]
    targets = (around > -0.15).long() + (around > 0.15).long()
    return Task(
        name="pixels",
        train=Examples(images[:60], targets[:60]),
        test=Examples(images[60:], targets[60:]),
        classes=CLASSES,
        models={"convolutions": convolutions},
        loss=of_pixels,
        metric=intersection_error,
    )


@cache
def remembered() -> Task:
    """Return a task by a function that is no plain one."""
    return numbers()
