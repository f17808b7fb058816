"""From an algorithm's few lines of maths to an optimizer over any parameters.

`sgd.py` and `adam.py` say what happens to one float tensor. Here that is done to every parameter
that has a gradient, by the fastest kernel that can, or as those lines say it: complex ones as pairs
of real numbers, 16-bit ones in float32 with the decay inside the quantity that is rounded.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from weightdecay import checks
from weightdecay.optim.kernels import KERNELS, Ahead, Plan
from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import Scaling, Slot, State, slot_of
from weightdecay.optim.kernels.table import Table
from weightdecay.optim.rates import OURS, Applied, Coming, Group
from weightdecay.optim.rounding import KEY, ROUNDED, SIXTEEN_BIT, new_keys, round_into
from weightdecay.optim.scheduled import AnySchedule, ScheduledOptimizer
from weightdecay.optim.unknown_keys import looks_wrong, refuse

_STATE_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Elementwise(ScheduledOptimizer):
    """An optimizer whose update of an element needs that element alone."""

    #: What a subclass does to weights.
    algorithm: ClassVar[Algorithm]
    _kernel: str | None
    _plan: Plan | None = None
    _ahead: Ahead | None = None
    #: The tables that the last update was made by, where there are any.
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

    def _new_state(self, param: Tensor, group: Group) -> State:
        """Return the state of a parameter before its first update."""
        state = {"step": torch.tensor(0.0, dtype=torch.float32, device="cpu")}
        names = self.algorithm.states[self.algorithm.variant(group)]
        zero = {name: _zeros(param, group) for name in names}
        return {**state, **zero} if self.algorithm.counts else zero

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        self._plan = None

    def _follow_groups(self) -> None:
        if self._ahead is not None:
            raise RuntimeError(
                "`param_groups` must stay as they are once a step is captured, got others: a CUDA "
                "graph reads the numbers of those it was captured with. Replace them first, or "
                "build another optimizer."
            )
        super()._follow_groups()
        self._plan, self._tables = None, ()

    def _check(self, group: Group) -> None:
        known = [key for key in (*self.defaults, "schedule") if key not in OURS]
        wrong = [key for key in group.keys() - self.defaults.keys() if looks_wrong(key, known)]
        refuse(wrong, owner=type(self).__name__, known=known)
        super()._check(group)
        checks.flag("maximize", group["maximize"])
        checks.one_of("rounding", group["rounding"], ("stochastic", "compensated"))
        checks.one_of("state_dtype", group["state_dtype"], tuple(_STATE_DTYPES))
        if "l2" in group:
            group["l2"] = checks.number("l2", group["l2"], at_least=0)
        self.algorithm.check(group)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._plan = None
        if self._ahead is not None:
            self._ahead.refill(checked=False)  # what was done until now is given up

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
        """Return what each group's last update used; None before its first one here.

        On a GPU the kernel itself says so, and is waited for: of CUDA graphs too.
        """
        found = super().applied()
        for table in self._tables:
            for number, used in table.applied().items():
                found[number] = used
        return found

    def _capture(self, scaling: Scaling | None) -> None:
        """Record an update into the CUDA graph that is being captured; nothing is updated now."""
        grads = None if self._plan is None else self._plan.gradients()
        if self._plan is None or grads is None or not self._plan.holds(grads, self.state):
            raise RuntimeError(
                "An update of the same parameters must be made before a step is captured, or every "
                "replay would begin their state anew. Make one outside the graph first."
            )
        if self._ahead is None:
            self._ahead = Ahead(self._scheduled_groups(), self.algorithm)
        self._ahead.capture(self._plan, grads, scaling)

    def replayed(self, updates: int = 1) -> None:
        """Say that CUDA graphs of captured steps have made so many updates.

        A graph reads its α·η and λ from a table that is written ahead, for 1,024 updates: call this
        after every `graph.replay()`, or at least that often. It moves the schedule on, which a
        replay cannot; where GradScaler was captured too, it counts only what was not skipped. A
        value changed by hand takes effect with the next call; `replayed(0)` is one. Whenever the
        table is written again, what the device did is checked first (`verify`).
        """
        checks.whole("updates", updates, at_least=0)
        if self._ahead is None:
            raise RuntimeError("A step must have been captured to be replayed, got none.")
        self._scheduled_groups()  # which raises where others have replaced them
        made = self._ahead.replayed(updates)
        if made:
            self._plan = None  # which has not seen these updates
            self._applied, self._tables = (), self._ahead.tables
        self._count(made)
        if made:
            self._warn_if_over()

    def verify(self) -> None:
        """Raise unless CUDA graphs made the updates `replayed` was told of, as the schedule says.

        The device says how many it made, and the α·η and λ·η of the last. Waits for it.
        """
        if self._ahead is not None:
            self._ahead.check()

    def _count(self, updates: int, coming: list[Coming] | None = None) -> None:
        super()._count(updates, coming)
        if self._ahead is not None:
            self._ahead.refill()

    def _is_probed(self) -> bool:
        return not _capturing() and super()._is_probed()  # no gradient can be read in a capture

    def _create_state(self) -> None:
        self._new_plan()

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Whether GradScaler leaves unscaling and skipping to `step`.

        It must in a CUDA graph, where it cannot read whether to skip, and for float16 parameters,
        whose gradients it refuses to unscale. Elsewhere it must not: gradients that `step` unscales
        cannot be clipped before, and trainers refuse to.
        """
        return _capturing() or any(
            param.dtype is torch.float16 for group in self.param_groups for param in group["params"]
        )

    def _scaling(self) -> Scaling | None:
        """Return what GradScaler left for this step: whether gradients overflowed, and a scale."""
        found_inf = getattr(self, "found_inf", None)
        if found_inf is None:
            return None
        return torch.as_tensor(found_inf), getattr(self, "grad_scale", None)

    def _planned(self) -> tuple[Plan, list[Tensor]]:
        """Return a plan, and the gradients it is for."""
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
            reference=self._reference,
        )

    def _state_of(self, param: Tensor, group: Group, key: int) -> State:
        assert param.grad is not None
        if param.grad.is_sparse:
            raise RuntimeError(
                f"{type(self).__name__} must be given dense gradients, got a sparse one. Decay and "
                "momentum move every row: use sparse=False, or param.grad.to_dense()."
            )
        state: State = self.state.get(param, {})
        if not self.algorithm.keys(group) <= state.keys():
            state |= {k: v for k, v in self._new_state(param, group).items() if k not in state}
        self._compensate(param, state, group)
        if any(tensor.dtype in ROUNDED for tensor in (param, *_shaped_like(param, state))):
            state.setdefault(KEY, key)
        if state:
            self.state[param] = state
        return state

    def _check_state(self, param: Tensor, state: State, group: Group) -> None:
        keys = self.algorithm.keys(group)
        missing = keys - state.keys()
        if state.keys() - {KEY} and missing:  # all of it may begin anew, but no part alone
            raise ValueError(
                f"the state of a parameter must have {_quoted(keys)}, and "
                f"{_quoted(missing)} is missing."
            )
        for name in keys & state.keys():
            if not isinstance(state[name], Tensor):
                raise TypeError(f"`{name}` must be a tensor, got {state[name]!r}.")
        _shaped_like(param, state)

    def _compensate(self, param: Tensor, state: State, group: Group) -> None:
        """Keep what rounding cuts off where the group asks for it, and there alone."""
        rest = state.get("compensation")
        wanted = param.dtype in SIXTEEN_BIT and group["rounding"] == "compensated"
        if rest is not None and not (wanted and rest.dtype == param.dtype):
            param.add_(state.pop("compensation").to(param.dtype))
            rest = None
        if wanted and rest is None:
            state["compensation"] = torch.zeros_like(param)

    def _reference(self, slot: Slot, grad: Tensor, group: Group, multiplier: float) -> None:
        """Update one parameter as the paper's lines say: the specification of every kernel."""
        param, states = slot.param, dict(slot.states)
        if param.is_complex():
            param, grad = torch.view_as_real(param), torch.view_as_real(grad)
            states = {key: torch.view_as_real(value) for key, value in states.items()}
        if group["maximize"]:
            grad = -grad
        dtype = torch.float32 if param.dtype in SIXTEEN_BIT else param.dtype
        rest = states.pop("compensation", None)
        value = param.to(dtype) if rest is None else param.to(dtype) + rest
        wide = {key: state.to(dtype) for key, state in states.items()}
        counted = {"step": slot.state["step"]} if "step" in slot.state else {}
        state = {**wide, **counted}
        self.algorithm.reference(value, grad.to(dtype), state, group, multiplier)
        seed: dict[str, Any] = {
            "update": group["updates"],
            "stream": 4 * slot.key,
            "region": slot.region,
        }
        if rest is None:
            _store(param, value, **seed)
        else:
            param.copy_(value)
            _store(rest, torch.where(value.isfinite(), value - param, 0.0), **seed)
        for key, kept in states.items():
            seed["stream"] += 1
            _store(kept, wide[key], **seed)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kernel": self._kernel}


def _capturing() -> bool:
    return bool(torch.cuda.is_initialized()) and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def _zeros(param: Tensor, group: Group) -> Tensor:
    """Return a zero state for a parameter; of a 16-bit one in the group's `state_dtype`."""
    dtype = _STATE_DTYPES[group["state_dtype"]] if param.dtype in SIXTEEN_BIT else param.dtype
    return torch.zeros_like(param, dtype=dtype)


def _shaped_like(param: Tensor, state: State) -> list[Tensor]:
    """Return the tensors of a state, less its count of updates, if they have the right shape."""
    tensors = {k: v for k, v in state.items() if isinstance(v, Tensor) and k != "step"}
    for name, value in tensors.items():
        if value.shape != param.shape:
            raise ValueError(
                f"`{name}` must have its parameter's shape {tuple(param.shape)}, got "
                f"{tuple(value.shape)}: the state is another model's."
            )
    return list(tensors.values())


def _quoted(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _store(tensor: Tensor, value: Tensor, **place: Any) -> None:
    if tensor.dtype in SIXTEEN_BIT:
        round_into(tensor, value, **place)
    elif tensor is not value:
        tensor.copy_(value)
