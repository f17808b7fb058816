"""What each argument of an optimizer means: one line each, shown by `help`."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from weightdecay.optim.unknown_keys import refuse

T = TypeVar("T")

_LINES = {
    "params": "parameters, (name, parameter) pairs, or groups with values of their own",
    "lr": "α, the learning rate at η = 1",
    "betas": "β₁ and β₂, how much of the two moments an update keeps",
    "eps": "ε, added to the root of the second moment",
    "amsgrad": "divide by the largest second moment so far, which never falls",
    "momentum": "β₁, how much of the momentum an update keeps",
    "nesterov": "step to where the momentum would be after one more such gradient",
    "l2": "factor of L2 regularization; torch calls it weight_decay",
    "weight_decay": "λ, the fraction of a weight removed per update at η = 1; or a `Normalized`",
    "maximize": "ascend the objective instead of descending",
    "schedule": "η, as a schedule or a function of t; None leaves `lr` to you or a torch scheduler",
    "kernel": '"triton", "fused", "foreach" or "reference"; None takes the fastest that fits',
    "rounding": '"stochastic" or "compensated" (2 bytes per weight), for 16-bit parameters',
    "state_dtype": '"float32" or "bfloat16", for the states of 16-bit parameters',
    "first": "updates before the first restart, or a list of the first cycles' lengths",
    "factor": "how many times longer each further cycle is than the one before",
    "high": "η at the start of a cycle: a number, one number per cycle, or a function of its index",
    "low": "η at the end of a cycle, stated like `high`",
    "normalized_decay": "λ_norm; a cycle of N updates has λ = λ_norm/√N",
}


def documented(**own: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator that lists a class's arguments in its docstring, and refuses others.

    `own` has a line for each argument that only this class has. The refusal says what was probably
    meant, which Python's own does not.
    """
    lines = {**_LINES, **own}

    def decorate(cls: type[T]) -> type[T]:
        init: Callable[..., None] = cls.__init__
        _, *names = inspect.signature(init).parameters
        said = (f"    {name}: {lines[name]}" for name in names)
        cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or ""), "", "Args:", *said])

        @functools.wraps(init)
        def checked(self: T, *args: Any, **options: Any) -> None:
            unknown = options.keys() - set(names)
            refuse(unknown, owner=type(self).__name__, known=names[1:])
            init(self, *args, **options)

        cls.__init__ = checked  # type: ignore[method-assign, assignment]
        return cls

    return decorate
