"""Which parameters decay: groups by module type and name, with a table of all decisions.

The optimizers decay every parameter they are given, as the paper does. In practice biases and the
parameters of normalization layers are often excluded; this shows which, before anything is trained.
Decisions depend on modules and names, never on shapes, so they are right after sharding too. Only a
wrapper that merges parameters into one, as FSDP1 does without use_orig_params, hides them.
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
    """A rule for modules whose class, or one of its base classes, has a name like `pattern`."""

    pattern: str


Rule: TypeAlias = type[nn.Module] | ClassName | str

#: What `parameter_groups` excludes by default: normalization layers and biases. Many models have
#: normalization layers of their own, which can only be recognized by name: LlamaRMSNorm,
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
    """The decision for one parameter, and the rule behind it."""

    name: str
    module: str
    shape: tuple[int, ...]
    decays: bool
    reason: str


class ParameterGroups(list[dict[str, Any]]):
    """Groups for an optimizer; `print` shows the decision for each parameter."""

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

    Frozen parameters are included, so that they can be unfrozen later: without a gradient they do
    not change. `skip` lists what does not decay: a module type means the module's own parameters, a
    string is a pattern for a parameter's full name (`"*bias"`, `"encoder.*.scale"`). It replaces
    `NO_DECAY`, which recognizes normalization layers by type and by class name (`LlamaRMSNorm`),
    and biases by name; to add rules, pass `[*NO_DECAY, …]`. A rule of yours that matches no
    parameter is an error. A parameter with several names is excluded if any of its names is.
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
            matching = [rule for rule in rules if _matches(rule, owner, role)]
            used.update(matching)
            _, earlier = found.get(id(param), (param, None))
            if earlier is None or (earlier.decays and matching):
                decision = Decision(
                    name=own_name if earlier is None else earlier.name,
                    module=type(owner).__name__,
                    shape=tuple(param.shape),
                    decays=not matching,
                    reason=_reason(matching[0]) if matching else "no rule exempts it",
                )
                found[id(param)] = param, decision
    unused = [rule for rule in rules if rule not in used]
    if skip is not None and (unknown := [r for r in unused if r not in NO_DECAY]):
        raise ValueError(
            f"Every rule of `skip` must match a parameter, got {', '.join(map(_reason, unknown))}, "
            "which matches none. Print the groups without it to see all names."
        )
    groups = []
    for decays, decay in ((True, weight_decay), (False, 0.0)):
        members = [(d.name, param) for param, d in found.values() if d.decays is decays]
        if members:
            groups.append({"params": members, "weight_decay": decay})
    return ParameterGroups(groups, (decision for _, decision in found.values()))


def _role(model: nn.Module, module: nn.Module, name: str) -> tuple[nn.Module, str]:
    """Return the module and the name of a parameter; those of the original if parametrized."""
    if not isinstance(module, ParametrizationList):
        return module, name
    prefix, _, rest = name.rpartition("parametrizations.")
    return model.get_submodule(prefix.rstrip(".")), prefix + rest.split(".")[0]


def _matches(rule: Rule, module: nn.Module, name: str) -> bool:
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
