"""The arguments of the optimizers: one line each, shown by `help`."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from weightdecay.decay import Normalized
from weightdecay.optim.unknown_keys import refuse

T = TypeVar("T")

_LINES = {
    "params": "parameters, (name, parameter) pairs, or groups that may have their own values",
    "lr": "α, the learning rate at η = 1",
    "betas": "β₁ and β₂, the shares of the first and second moment that each update keeps",
    "eps": "ε, added to the square root of the second moment",
    "amsgrad": "divide by the largest second moment so far instead of the current one",
    "momentum": "β₁, the share of the momentum that each update keeps",
    "nesterov": "use Nesterov momentum: step as if the same gradient came once more",
    "l2": "L2 regularization factor; torch calls it weight_decay",
    "weight_decay": "λ, the fraction of a weight removed per update at η = 1; or a `Normalized`",
    "maximize": "maximize the objective instead of minimizing it",
    "schedule": "η, as a schedule or a function of t; None leaves `lr` to you or a torch scheduler",
    "kernel": '"triton", "fused", "foreach" or "reference"; None uses the fastest that fits',
    "rounding": 'for 16-bit parameters, "stochastic" or "compensated" (2 more bytes per weight)',
    "state_dtype": 'dtype of the states of 16-bit parameters, "float32" or "bfloat16"',
    "first": "length of the first cycle in updates, or a list of the first few lengths",
    "factor": "how many times longer each cycle is than the one before",
    "high": "η at the start of a cycle: a number, one number per cycle, or a function of its index",
    "low": "η at the end of a cycle, given like `high`",
    "normalized_decay": "λ_norm; a cycle of N updates has λ = λ_norm/√N",
}


def documented(**own: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator that adds a class's arguments to its docstring and refuses unknown ones.

    `own` has a line for each argument that only this class has. Unlike Python's own error, the
    refusal suggests the name that was probably meant.
    """
    lines = {**_LINES, **own}

    def decorate(cls: type[T]) -> type[T]:
        init: Callable[..., None] = cls.__init__
        signature = inspect.signature(init)
        _, *names = signature.parameters
        listed = (f"    {name}: {lines[name]}" for name in names)
        cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or ""), "", "Args:", *listed])

        @functools.wraps(init)
        def checked(self: T, *args: Any, **options: Any) -> None:
            unknown = options.keys() - set(names)
            refuse(unknown, owner=type(self).__name__, known=names[1:])
            init(self, *args, **options)

        checked.__signature__ = _requiring_decay(signature)  # type: ignore[attr-defined]
        cls.__init__ = checked  # type: ignore[method-assign, assignment]
        return cls

    return decorate


def _requiring_decay(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature that shows `weight_decay` without a default.

    None, its default in code, is only valid if every group has a decay of its own.
    """
    parameters = [
        parameter.replace(default=inspect.Parameter.empty, annotation=float | Normalized)
        if parameter.name == "weight_decay"
        else parameter
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)
