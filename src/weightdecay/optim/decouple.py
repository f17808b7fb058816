"""Decoupled weight decay for any `torch.optim.Optimizer`.

    Adagrad = decouple(torch.optim.Adagrad)
    opt = Adagrad(model.parameters(), lr=0.01, weight_decay=1e-4, schedule=Cosine(10_000))

The class steps on the gradient of the loss alone, with its own decay set to 0. Then η·λ·θ_{t−1} is
subtracted from every parameter that has a gradient, where θ_{t−1} are the weights before the step.
Decaying before the step would differ for a class whose step reads the weights, such as Adafactor.
During the step there is a copy of the decaying weights.

A class that keeps its own copy of the weights, or rescales them, would undo part of the decay. A
trial of a few steps with zero gradients finds out, and such a class is refused. docs/decouple.md
lists which classes are.

To see what decoupling changes, pass `l2` instead of `weight_decay`: then the class itself adds l2·θ
to the gradient, as it does without us, under the same schedule. A class whose own decay is not L2
regularization is refused, again after a trial.

`decouple(torch.optim.SGD)` is not SGDW. Algorithm 1 has η·α inside the momentum, while torch
multiplies the whole buffer by the current lr, so that a schedule also rescales past gradients. The
two agree only while lr is constant.
"""

import copy
import functools
import importlib
import inspect
import warnings
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from weightdecay import checks
from weightdecay.decay import Normalized
from weightdecay.optim.rates import Group
from weightdecay.optim.rounding import KEY, SIXTEEN_BIT, new_keys, round_into
from weightdecay.optim.scheduled import AnySchedule, ScheduledOptimizer
from weightdecay.optim.shards import local, region_of
from weightdecay.optim.trials import fault_of_decay, regularizes, unhooked

_REFUSED: dict[type[torch.optim.Optimizer], str] = {
    torch.optim.LBFGS: "it evaluates the loss several times per step in a line search, so no "
    "single θ_{t−1} belongs to a step",
    torch.optim.Rprop: "it adapts its step sizes to the signs of gradients and soon forgets lr, so "
    "a schedule of lr has no effect",
    torch.optim.ASGD: "it decays weights by `lambd` and lowers lr by its own schedule, so lr "
    "cannot follow ours",
}
# The two ways to state a decay. A group uses one of them.
_WAYS = ("weight_decay", "l2")


class Decoupled(ScheduledOptimizer):
    """The base class of all decoupled classes; `original` is the class that was decoupled."""

    original: type[torch.optim.Optimizer]
    _again: functools.partial[torch.optim.Optimizer]
    _unprobed: tuple[dict[Any, Any], list[Group]] | None = None

    def __init__(
        self,
        params: ParamsT,
        *args: Any,
        weight_decay: float | Normalized | None = None,
        l2: float | None = None,
        schedule: AnySchedule = None,
        **options: Any,
    ) -> None:
        self._set_schedule(schedule)
        if "weight_decay" in inspect.signature(self.original.__init__).parameters:
            options["weight_decay"] = 0.0
        self._again = functools.partial(self.original, *args, **options)
        given = {"weight_decay": weight_decay, "l2": l2}
        decay: Group = {way: value for way, value in given.items() if value is not None}
        decay = decay or {"weight_decay": None}  # an error unless every group states its own
        groups: Any = params  # torch refuses a single tensor
        if not isinstance(params, Tensor):
            groups = list(params)
            if groups and not isinstance(groups[0], dict):
                groups = [{"params": groups}]
            groups = [group if _ways(group) else {**decay, **group} for group in groups]
        self.original.__init__(self, groups, *args, **options)
        self.defaults.pop("weight_decay", None)
        self.defaults.update(decay)
        # GradScaler must skip the whole step, and not leave that to the class's kernel.
        self._step_supports_amp_scaling = False

    def add_param_group(self, param_group: Group) -> None:
        """Add a group; see `ScheduledOptimizer.add_param_group`."""
        if "lr" not in self.defaults:
            raise TypeError(
                f"A class to decouple must have an `lr`, and {self.original.__name__} has none: a "
                "schedule needs it."
            )
        # A group that states one way must not inherit the other from the defaults.
        own = _ways(param_group)
        others = [way for way in _ways(self.defaults) if own and way not in own]
        aside = {way: self.defaults.pop(way) for way in others}
        try:
            super().add_param_group(param_group)
        finally:
            self.defaults.update(aside)

    def _check(self, group: Group) -> None:
        if len(_ways(group)) > 1:
            raise ValueError("A group must have `weight_decay` or `l2`, got both.")
        super()._check(group)
        if "l2" in group:
            group["l2"] = checks.number("l2", group["l2"], at_least=0)

    def _try_out(self, group: Group) -> None:
        if group.get("weight_decay"):
            self._check_idle_weights(group)
        if group.get("l2") and not regularizes(self._again, group):
            raise ValueError(
                f"`l2` must be 0 for {self.original.__name__}, got {group['l2']:g}: its own decay "
                "is not L2 regularization (it is decoupled already, or there is none), so nothing "
                "would add l2·θ to the gradient. Use `weight_decay` instead."
            )

    def _check_idle_weights(self, group: Group) -> None:
        """Raise unless weights without gradients shrink by exactly λ."""
        name = self.original.__name__
        try:
            fault = fault_of_decay(self._again, group)
        except Exception as error:  # noqa: BLE001  # a class may need something the trial lacks
            warnings.warn(
                f"Could not test whether {name} leaves the decay to weightdecay: its step raised "
                f"{type(error).__name__}: {error}",
                stacklevel=2,
            )
            return
        if fault is not None:
            raise TypeError(
                f"{name} cannot be decoupled with these arguments: with zero gradients, weights "
                f"must shrink by λ in every update, but {fault}. The class keeps its own copy of "
                "the weights, or rescales them. Pass weight_decay=0, or use SGDW or AdamW."
            )

    def _make_update(self, multipliers: list[float]) -> bool:
        if self._unprobed is not None:
            self._restore(*self._unprobed)
            self._unprobed = None
        decaying = [
            (param, multiplier * group["weight_decay"])
            for group, multiplier in zip(self.param_groups, multipliers, strict=True)
            for param in group["params"]
            if param.grad is not None and multiplier * group.get("weight_decay", 0.0)
        ]
        if any(param.grad.is_sparse for param, _ in decaying):
            raise RuntimeError(
                f"A decoupled {self.original.__name__} must be given dense gradients if weights "
                "decay, got a sparse one. Rows without a gradient would have to decay too: use "
                "sparse=False, or weight_decay=0 for that group."
            )
        before = [param.detach().clone() for param, _ in decaying]
        self._step_original()
        if any(param.dtype in SIXTEEN_BIT for param, _ in decaying):
            self._keep_rounding_keys({param for param, _ in decaying})
        update = self.param_groups[0]["updates"]
        for (param, rate), old in zip(decaying, before, strict=True):
            shard, amount = local(param), rate * _wide(local(old))
            if shard.dtype in SIXTEEN_BIT:
                stream, region = 4 * self.state[param][KEY], region_of(param)
                decayed = shard.float() - amount
                round_into(shard, decayed, update=update, stream=stream, region=region)
            else:
                shard.sub_(amount)
        return True

    def _keep_rounding_keys(self, decaying: set[Tensor]) -> None:
        """Add rounding keys to the states. After a step, since classes initialize empty states."""
        params = [param for group in self.param_groups for param in group["params"]]
        for param, key in zip(params, new_keys(self.param_groups), strict=True):
            if param in decaying and param.dtype in SIXTEEN_BIT:
                self.state[param].setdefault(KEY, key)

    def _create_state(self) -> None:
        """Let the class create its state by a step, then undo the rest of that step."""
        if any(group["updates"] for group in self.param_groups):
            return
        groups = [dict(group) for group in self.param_groups]
        state = {param: copy.deepcopy(values) for param, values in self.state.items()}
        params = [param for group in self.param_groups for param in group["params"]]
        before = [param.detach().clone() for param in params]
        self._step_original()
        for param, old in zip(params, before, strict=True):
            param.copy_(old)
        # The new state stays until the first update or a load, since a checkpoint may read it.
        if self._unprobed is None:
            pairs = zip(groups, self.param_groups, strict=True)
            changed = [{k: v for k, v in old.items() if new[k] is not v} for old, new in pairs]
            self._unprobed = state, changed

    def _restore(self, state: dict[Any, Any], groups: list[Group]) -> None:
        self.state.clear()
        self.state.update(state)
        for group, changed in zip(self.param_groups, groups, strict=True):
            group.update(changed)

    def _step_original(self) -> None:
        """Run the class's own step with `l2` as its decay, without hooks: our step runs them."""
        decays = [group.get("weight_decay") for group in self.param_groups]
        hooks = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = {}, {}
        for group in self.param_groups:
            group["weight_decay"] = group.get("l2", 0.0)
        try:
            unhooked(self.original.step)(self)
        finally:
            self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = hooks
            for group, weight_decay in zip(self.param_groups, decays, strict=True):
                group["weight_decay"] = weight_decay
                if "l2" in group:
                    del group["weight_decay"]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a saved state, by the class's own method if it has one."""
        if self.original.load_state_dict is torch.optim.Optimizer.load_state_dict:
            super().load_state_dict(state_dict)
        else:
            self.original.load_state_dict(self, state_dict)
        self._unprobed = None

    def __getstate__(self) -> dict[str, Any]:
        # torch saves only its own attributes, but the class's step may need others.
        others = {
            name: value
            for name, value in vars(self).items()
            if name != "step" and not name.startswith("_optimizer_")
        }
        return {**others, **super().__getstate__()}


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in SIXTEEN_BIT else tensor


def decouple(cls: type[torch.optim.Optimizer]) -> type[Decoupled]:
    """Return a subclass of `cls` with decoupled weight decay and a schedule.

    It takes the arguments of `cls`, and `schedule`. `weight_decay` is λ, the fraction of a weight
    removed per step, whatever `lr` is. `l2` is what `cls` itself calls weight_decay. One of the two
    is required, as an argument or in every group. Calling `decouple` again returns the same
    subclass, which can be pickled.
    """
    if not (isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)):
        raise TypeError(f"`cls` must be a subclass of torch.optim.Optimizer, got {cls!r}.")
    if issubclass(cls, ScheduledOptimizer):
        raise TypeError(
            f"`cls` must not be a weightdecay class, got {cls.__name__}. "
            "SGDW and AdamW are the decoupled SGD and Adam."
        )
    for refused, reason in _REFUSED.items():
        if issubclass(cls, refused):
            raise TypeError(f"{cls.__name__} cannot be decoupled: {reason}.")
    closure = inspect.signature(cls.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise TypeError(
            f"{cls.__name__} cannot be decoupled: its step requires a closure and evaluates the "
            "loss more than once."
        )
    return _decoupled(cls)  # type: ignore[arg-type]  # mypy: a class can be hashed


@functools.cache
def _decoupled(cls: type[torch.optim.Optimizer]) -> type[Decoupled]:
    body = {
        "original": cls,
        "__module__": __name__,
        "__qualname__": _address(cls),
        "__doc__": f"{cls.__name__} with decoupled weight decay: see `weightdecay.decouple`.",
    }
    return type(f"Decoupled{cls.__name__}", (Decoupled, cls), body)


def _ways(group: Group) -> list[str]:
    return [way for way in _WAYS if way in group]


def _address(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}".replace(".", "/")


def __getattr__(name: str) -> type[Decoupled]:
    """Find a decoupled class by the address of its original, for pickle."""
    module, colon, qualname = name.replace("/", ".").partition(":")
    if not colon:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return decouple(found)
