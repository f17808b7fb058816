"""AdamWR and SGDWR: AdamW and SGDW with warm restarts and normalized weight decay."""

from collections.abc import Sequence
from fractions import Fraction

from torch import Tensor
from torch.optim.optimizer import ParamsT

from weightdecay.decay import Normalized
from weightdecay.optim.adam import AdamW
from weightdecay.optim.arguments import documented
from weightdecay.optim.sgd import SGDW
from weightdecay.schedules import PerCycle, WarmRestarts


@documented()
class AdamWR(AdamW):
    """AdamW with cosine annealing, warm restarts and normalized weight decay.

    The same as `AdamW` with `schedule=WarmRestarts(first, factor=factor, high=high, low=low)` and
    `weight_decay=Normalized(normalized_decay)`.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor,
        *,
        first: int | Sequence[int],
        factor: float | Fraction = 2,
        high: PerCycle = 1.0,
        low: PerCycle = 0.0,
        normalized_decay: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        amsgrad: bool = False,
        maximize: bool = False,
        kernel: str | None = None,
        rounding: str = "stochastic",
        state_dtype: str = "float32",
    ) -> None:
        super().__init__(
            params,
            lr,
            weight_decay=Normalized(normalized_decay),
            schedule=WarmRestarts(first, factor=factor, high=high, low=low),
            betas=betas,
            eps=eps,
            amsgrad=amsgrad,
            maximize=maximize,
            kernel=kernel,
            rounding=rounding,
            state_dtype=state_dtype,
        )


@documented()
class SGDWR(SGDW):
    """SGDW with cosine annealing, warm restarts and normalized weight decay.

    The same as `SGDW` with `schedule=WarmRestarts(first, factor=factor, high=high, low=low)` and
    `weight_decay=Normalized(normalized_decay)`.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor,
        *,
        first: int | Sequence[int],
        factor: float | Fraction = 2,
        high: PerCycle = 1.0,
        low: PerCycle = 0.0,
        normalized_decay: float,
        momentum: float = 0.9,
        nesterov: bool = False,
        maximize: bool = False,
        kernel: str | None = None,
        rounding: str = "stochastic",
        state_dtype: str = "float32",
    ) -> None:
        super().__init__(
            params,
            lr,
            weight_decay=Normalized(normalized_decay),
            schedule=WarmRestarts(first, factor=factor, high=high, low=low),
            momentum=momentum,
            nesterov=nesterov,
            maximize=maximize,
            kernel=kernel,
            rounding=rounding,
            state_dtype=state_dtype,
        )
