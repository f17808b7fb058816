"""From an algorithm's few lines of maths to an optimizer for any parameters.

`sgd.py` and `adam.py` define the update of one float tensor. Here every parameter that has a
gradient is updated, each by the fastest kernel that supports it, in a CUDA graph or outside one.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from weightdecay import checks
from weightdecay.optim import parameter_state
from weightdecay.optim.kernels import KERNELS, GraphRates, Plan
from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import Scaling, State, slot_of
from weightdecay.optim.kernels.table import Table
from weightdecay.optim.rates import OURS, Applied, Coming, Group
from weightdecay.optim.rounding import new_keys
from weightdecay.optim.scheduled import AnySchedule, ScheduledOptimizer
from weightdecay.optim.unknown_keys import looks_wrong, refuse


class Elementwise(ScheduledOptimizer):
    """An optimizer that updates each element independently of all others."""

    #: The update rule, set by a subclass.
    algorithm: ClassVar[Algorithm]
    _kernel: str | None
    _plan: Plan | None = None
    _graph_rates: GraphRates | None = None
    #: The tables used by the last update, if a Triton kernel made it.
    _tables: Sequence[Table] = ()

    def __init__(
        self,
        params: ParamsT,
        *,
        schedule: AnySchedule,
        kernel: str | None,
        **defaults: Any,
    ) -> None:
        self._kernel = None if kernel is None else checks.one_of("kernel", kernel, KERNELS)
        super().__init__(params, schedule=schedule, **defaults)

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        self._plan = None

    def _follow_groups(self) -> None:
        if self._graph_rates is not None:
            raise RuntimeError(
                "`param_groups` must not be replaced after a step was captured, got other groups. "
                "A CUDA graph reads the numbers of the groups it was captured with: replace them "
                "before the capture, or build another optimizer."
            )
        super()._follow_groups()
        self._plan, self._tables = None, ()

    def _check(self, group: Group) -> None:
        known = [key for key in (*self.defaults, "schedule") if key not in OURS]
        wrong = [key for key in group.keys() - self.defaults.keys() if looks_wrong(key, known)]
        refuse(wrong, owner=f"A group of {type(self).__name__}", known=known)
        super()._check(group)
        checks.flag("maximize", group["maximize"])
        checks.one_of("rounding", group["rounding"], ("stochastic", "compensated"))
        checks.one_of("state_dtype", group["state_dtype"], tuple(parameter_state.STATE_DTYPES))
        if "l2" in group:
            group["l2"] = checks.number("l2", group["l2"], at_least=0)
        self.algorithm.check(group)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._plan = None
        if self._graph_rates is not None:
            self._graph_rates.refill(checked=False)  # the updates made so far are discarded

    def _make_update(self, multipliers: list[float]) -> bool:
        scaling = self._scaling()
        if _capturing():
            self._capture(scaling)
            return False
        if scaling is not None and bool(scaling[0]):
            return False
        plan, grads = self._planned()
        plan.run(grads, multipliers, scaling)
        self._tables = plan.tables
        return True

    def applied(self) -> list[Applied | None]:
        """Return the numbers that each group's last update used; None before the first update.

        On a GPU the kernel itself reports them, also from a CUDA graph. This waits for the device.
        """
        found = super().applied()
        for table in self._tables:
            for number, used in table.applied().items():
                found[number] = used
        return found

    def _capture(self, scaling: Scaling | None) -> None:
        """Record an update into the CUDA graph being captured; no weight changes now."""
        grads = None if self._plan is None else self._plan.gradients()
        if self._plan is None or grads is None or not self._plan.holds(grads, self.state):
            raise RuntimeError(
                "An update of the same parameters must be made before a step is captured, or every "
                "replay would reset their state. Make one outside the graph first."
            )
        if self._graph_rates is None:
            self._graph_rates = GraphRates(self._scheduled_groups(), self.algorithm)
        self._graph_rates.capture(self._plan, grads, scaling)

    def replayed(self, updates: int = 1) -> None:
        """Report that CUDA graphs have replayed a captured step this many times.

        A graph reads α·η and λ from a table written in advance for 1,024 updates. Call this after
        every `graph.replay()`, or at least once per 1,024 replays. It advances the schedule, which
        a replay cannot do. If GradScaler was captured too, skipped updates are not counted. A value
        that you change by hand takes effect at the next call; `replayed(0)` is enough. Each time
        the table is rewritten, `verify` checks first what the device did.
        """
        checks.whole("updates", updates, at_least=0)
        if self._graph_rates is None:
            raise RuntimeError("A step must have been captured to be replayed, got none.")
        self._scheduled_groups()  # raises if `param_groups` was replaced
        made = self._graph_rates.replayed(updates)
        if made:
            self._plan = None  # it has not seen these updates
            self._applied, self._tables = (), self._graph_rates.tables
        self._count(made)
        if made:
            self._warn_if_over()

    def verify(self) -> None:
        """Raise unless CUDA graphs made the updates reported to `replayed`, at the right rates.

        The device reports how many it made, and α·η and λ·η of the last. This waits for the device.
        """
        if self._graph_rates is not None:
            self._graph_rates.check()

    def _count(self, updates: int, coming: list[Coming] | None = None) -> None:
        super()._count(updates, coming)
        if self._graph_rates is not None:
            self._graph_rates.refill()

    def _is_probed(self) -> bool:
        return not _capturing() and super()._is_probed()  # gradients cannot be read in a capture

    def _create_state(self) -> None:
        self._new_plan()

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Whether GradScaler leaves unscaling and skipping to `step`.

        It has to in a CUDA graph, where it cannot read whether to skip, and for float16 parameters,
        whose gradients it refuses to unscale. Otherwise it should not: gradients that are unscaled
        in `step` cannot be clipped before it, and trainers refuse to clip them.
        """
        return _capturing() or any(
            param.dtype is torch.float16 for group in self.param_groups for param in group["params"]
        )

    def _scaling(self) -> Scaling | None:
        """Return what GradScaler set for this step: whether gradients overflowed, and the scale."""
        found_inf = getattr(self, "found_inf", None)
        if found_inf is None:
            return None
        return torch.as_tensor(found_inf), getattr(self, "grad_scale", None)

    def _planned(self) -> tuple[Plan, list[Tensor]]:
        """Return a valid plan and its gradients."""
        if self._plan is not None:
            grads = self._plan.gradients()
            if grads is not None and self._plan.holds(grads, self.state):
                return self._plan, grads
        self._plan = self._new_plan()
        grads = self._plan.gradients()
        assert grads is not None
        return self._plan, grads

    def _new_plan(self) -> Plan:
        slots, idle = [], []
        owners = [
            (n, param) for n, group in enumerate(self.param_groups) for param in group["params"]
        ]
        keys = new_keys(self.param_groups)
        for number, ((index, param), key) in enumerate(zip(owners, keys, strict=True)):
            if param.grad is None:
                idle.append(param)
            else:
                state = self._state_of(param, self.param_groups[index], key)
                slots.append(slot_of(param, state, group=index, number=number))
        return Plan(
            slots,
            self.param_groups,
            self.state,
            algorithm=self.algorithm,
            idle=idle,
            kernel=self._kernel,
        )

    def _state_of(self, param: Tensor, group: Group, key: int) -> State:
        assert param.grad is not None
        if param.grad.is_sparse:
            raise RuntimeError(
                f"{type(self).__name__} must be given dense gradients, got a sparse one. Decay and "
                "momentum change every row: use sparse=False, or param.grad.to_dense()."
            )
        state: State = self.state.get(param, {})
        parameter_state.complete(state, param, group, self.algorithm, rounding_key=key)
        if state:
            self.state[param] = state
        return state

    def _check_state(self, param: Tensor, state: State, group: Group) -> None:
        parameter_state.check(param, state, group, self.algorithm)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kernel": self._kernel}


def _capturing() -> bool:
    return bool(torch.cuda.is_initialized()) and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]
