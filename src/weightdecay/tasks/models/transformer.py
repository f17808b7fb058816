"""A small causal transformer over characters, with each norm before its layer."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from weightdecay import checks
from weightdecay.tasks.models.initial import start_
from weightdecay.tasks.models.noisy import Noisy


class Transformer(Noisy):
    """From tokens [batch, up to `length`] to logits of the next token, [batch, …, vocabulary].

    In training, dropout is applied to the embedding and to the output of each layer: numbers are
    set to 0 with probability `dropout`, and the others divided by 1 − `dropout`.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        length: int = 64,
        width: int = 128,
        depth: int = 4,
        heads: int = 4,
        dropout: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(generator)
        checks.whole("vocabulary", vocabulary, at_least=2)
        self.length = checks.whole("length", length, at_least=1)
        self.width = checks.whole("width", width, at_least=1)
        checks.whole("depth", depth, at_least=0)
        if width % checks.whole("heads", heads, at_least=1):
            raise ValueError(f"`heads` must divide `width`, {width}, got {heads}.")
        self.dropout = checks.number("dropout", dropout, at_least=0, below=1)
        with torch.device("meta"):
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Embedding(length, width)
            layers = (
                layer for _ in range(depth) for layer in (_Attention(width, heads), _Hidden(width))
            )
            self.layers = nn.ModuleList(layers)
            self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))
        start_(self, generator)

    def draw(self, inputs: Tensor) -> Tensor:
        """Return the factors of dropout: 0, or else 1/(1 − dropout)."""
        places = 1 + len(self.layers)
        if not self.training or self.dropout == 0:
            return torch.ones(places, 1, 1, 1, device=inputs.device)
        drawn = self.uniform(places, *inputs.shape, self.width, device=inputs.device)
        return (drawn >= self.dropout) / (1 - self.dropout)

    def compute(self, inputs: Tensor, noise: Tensor) -> Tensor:
        if inputs.shape[1] > self.length:
            raise ValueError(
                f"`inputs` must have at most {self.length} tokens, got {inputs.shape[1]}. "
                "Build the model with a larger `length`."
            )
        first, *rest = noise.unbind()
        x = first * (self.tokens(inputs.long()) + self.positions.weight[: inputs.shape[1]])
        for layer, keep in zip(self.layers, rest, strict=True):
            x = x + keep * layer(x)
        logits: Tensor = self.head(x)
        return logits


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.projections = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        # [batch, length, 3·width] to queries, keys and values, each [batch, heads, length, …].
        split = torch.unflatten(self.projections(self.norm(x)), -1, (3, self.heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind()
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        output: Tensor = self.output(seen.transpose(1, 2).flatten(-2))
        return output


class _Hidden(nn.Sequential):
    def __init__(self, width: int) -> None:
        super().__init__(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )
