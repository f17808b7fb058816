"""Who decays: parameter groups by module type and name, with a table of what was decided.

The optimizers decay all they are given, as the paper does. Practice often leaves biases and the
parameters of normalization layers out; this says which, before anything is trained. It looks at
modules and names, never at shapes, so it is as right after sharding as before; only a wrapper that
merges parameters into one, as FSDP1 does without use_orig_params, leaves nothing to look at.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from torch import nn
from torch.nn.utils.parametrize import ParametrizationList

from weightdecay.decay import Normalized
from weightdecay.table import table


@dataclass(frozen=True)
class ClassName:
    """A rule for modules whose class, or one that it comes from, is named like `pattern`."""

    pattern: str


Rule: TypeAlias = type[nn.Module] | ClassName | str

#: What `parameter_groups` leaves out unless told otherwise: normalization layers, and biases.
#: Many models bring normalization layers of their own, which only their names tell: LlamaRMSNorm,
#: T5LayerNorm, LayerNorm2d.
NO_DECAY: tuple[Rule, ...] = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
    ClassName("*Norm"),
    ClassName("*Norm[123]d"),
    ClassName("*NormGated"),
    "*bias",
    "*bias_*",
)


@dataclass(frozen=True)
class Decision:
    """What was decided for one parameter, and by which rule."""

    name: str
    module: str
    shape: tuple[int, ...]
    decays: bool
    reason: str


class ParameterGroups(list[dict[str, Any]]):
    """Groups to give to an optimizer; `print` shows what was decided for each parameter."""

    def __init__(self, groups: Iterable[dict[str, Any]], decisions: Iterable[Decision]) -> None:
        super().__init__(groups)
        self.decisions = tuple(decisions)

    def __str__(self) -> str:
        rows = [
            (d.name, d.module, "×".join(map(str, d.shape)), "yes" if d.decays else "no", d.reason)
            for d in self.decisions
        ]
        return table([("parameter", "module", "shape", "decays", "because"), *rows])


def parameter_groups(
    model: nn.Module, *, weight_decay: float | Normalized, skip: Iterable[Rule] | None = None
) -> ParameterGroups:
    """Divide a model's parameters into those that decay and those that do not.

    Frozen ones are among them, so that they can be unfrozen: without a gradient nothing moves.
    `skip` lists who does not decay: a module type means the parameters it holds itself, a string
    is a pattern for a parameter's full name (`"*bias"`, `"encoder.*.scale"`). It replaces
    `NO_DECAY`, which knows normalization layers by type and by class name (`LlamaRMSNorm`) and
    biases by name; to add to that, pass `[*NO_DECAY, …]`. A rule of yours that no parameter meets
    is an error, and a parameter shared under several names is left out if any of them is.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be a torch.nn.Module, got {type(model).__name__}.")
    if isinstance(skip, (str, type)):
        raise TypeError(f"`skip` must be a list of module types and name patterns, got {skip!r}.")
    rules = NO_DECAY if skip is None else tuple(skip)
    for rule in rules:
        if not isinstance(rule, (str, ClassName)) and not (
            isinstance(rule, type) and issubclass(rule, nn.Module)
        ):
            raise TypeError(f"`skip` must list module types and name patterns, got {rule!r}.")
    found: dict[int, tuple[nn.Parameter, Decision]] = {}
    used: set[Rule] = set()
    for prefix, module in model.named_modules(remove_duplicate=False):
        named = module.named_parameters(prefix, recurse=False, remove_duplicate=False)
        for own_name, param in named:
            owner, role = _role(model, module, own_name)
            met = [rule for rule in rules if _meets(rule, owner, role)]
            used.update(met)
            _, earlier = found.get(id(param), (param, None))
            if earlier is None or (earlier.decays and met):
                decision = Decision(
                    name=own_name if earlier is None else earlier.name,
                    module=type(owner).__name__,
                    shape=tuple(param.shape),
                    decays=not met,
                    reason=_reason(met[0]) if met else "no rule",
                )
                found[id(param)] = param, decision
    unused = [rule for rule in rules if rule not in used]
    if skip is not None and (unknown := [r for r in unused if r not in NO_DECAY]):
        raise ValueError(
            f"Every rule of `skip` must meet a parameter, got {', '.join(map(_reason, unknown))}, "
            "which none does. Print the groups without it to see the names."
        )
    groups = []
    for decays, decay in ((True, weight_decay), (False, 0.0)):
        members = [(d.name, param) for param, d in found.values() if d.decays is decays]
        if members:
            groups.append({"params": members, "weight_decay": decay})
    return ParameterGroups(groups, (decision for _, decision in found.values()))


def _role(model: nn.Module, module: nn.Module, name: str) -> tuple[nn.Module, str]:
    """Return whose parameter it is, and under which name: a parametrized one is its original's."""
    if not isinstance(module, ParametrizationList):
        return module, name
    prefix, _, rest = name.rpartition("parametrizations.")
    return model.get_submodule(prefix.rstrip(".")), prefix + rest.split(".")[0]


def _meets(rule: Rule, module: nn.Module, name: str) -> bool:
    if isinstance(rule, str):
        return fnmatchcase(name, rule)
    if isinstance(rule, ClassName):
        return any(fnmatchcase(cls.__name__, rule.pattern) for cls in type(module).__mro__)
    return isinstance(module, rule)


def _reason(rule: Rule) -> str:
    if isinstance(rule, str):
        return f'name "{rule}"'
    if isinstance(rule, ClassName):
        return f'class "{rule.pattern}"'
    return f"in {rule.__name__.lstrip('_')}"
