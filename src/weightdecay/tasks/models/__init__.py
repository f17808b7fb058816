"""Models to train, one family per file.

Each takes a `generator` on the CPU and draws its initial weights from it. Models that also draw
random numbers during training are `Noisy`.
"""

from weightdecay.tasks.models.convnet import ConvNet
from weightdecay.tasks.models.mlp import MLP
from weightdecay.tasks.models.noisy import Noisy
from weightdecay.tasks.models.shakeshake import ShakeShake26
from weightdecay.tasks.models.transformer import Transformer

__all__ = ["MLP", "ConvNet", "Noisy", "ShakeShake26", "Transformer"]
