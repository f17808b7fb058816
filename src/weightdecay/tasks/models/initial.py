"""Initial weights, drawn from one generator on the CPU: a seed gives the same on every device.

A model builds its layers on the meta device, where torch's own initialization draws no random
numbers, and then calls `start_`.

    convolution  weight N(0, √(2/(k²·C_out)))    bias 0
    linear       weight U(−1/√C_in, 1/√C_in)     bias 0
    embedding    weight N(0, 1/√width)
    norm         weight 1                        bias 0
"""

import math

import torch
from torch import Tensor, nn


def start_(model: nn.Module, generator: torch.Generator | None) -> None:
    """Move a model from the meta device to the default one, and draw its weights.

    Without a generator, torch's default CPU generator is used.
    """
    if generator is not None and (
        not isinstance(generator, torch.Generator) or generator.device.type != "cpu"
    ):
        raise TypeError(
            f"`generator` must be a torch.Generator on the CPU or None, got {generator!r}. "
            'torch.Generator("cpu").manual_seed(seed) makes one.'
        )
    model.to_empty(device=torch.get_default_device())
    for layer in model.modules():
        _start_layer(layer, generator)


@torch.no_grad()
def _start_layer(layer: nn.Module, generator: torch.Generator | None) -> None:
    def normal(weight: Tensor, std: float) -> None:
        weight.copy_(std * torch.randn(weight.shape, generator=generator, device="cpu"))

    def uniform(weight: Tensor, bound: float) -> None:
        drawn = torch.rand(weight.shape, generator=generator, device="cpu")
        weight.copy_(bound * (2 * drawn - 1))

    match layer:
        case nn.Conv2d():
            normal(layer.weight, math.sqrt(2 / layer.weight[:, 0].numel()))
        case nn.Linear():
            uniform(layer.weight, 1 / math.sqrt(layer.in_features))
        case nn.Embedding():
            normal(layer.weight, 1 / math.sqrt(layer.embedding_dim))
        case nn.BatchNorm1d() | nn.BatchNorm2d() | nn.LayerNorm():
            layer.reset_parameters()
        case _ if list(layer.parameters(recurse=False)):
            raise TypeError(
                "A layer with weights must be a convolution, linear, an embedding or a norm, got "
                f"{type(layer).__name__}. Define its initial weights in {__name__}."
            )
    if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
        layer.bias.zero_()
