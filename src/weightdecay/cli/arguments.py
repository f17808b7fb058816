"""Parsing of arguments: numbers such as 2^-9, and the names of options."""

import argparse
import re
from collections.abc import Callable, Container
from typing import Any, TypeAlias, TypeVar

from weightdecay import checks, notation

#: The type that `add_subparsers` returns. Each command adds itself to it.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

NUMBERS = "Numbers may be written 0.05, 2^-9 or 1/4*0.001."
_SPELLED = {"source": "--from"}
_Number = TypeVar("_Number", int, float)


class Parser(argparse.ArgumentParser):
    """argparse's parser, with a "did you mean" for misspelt commands, options and choices."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._subparsers is None and args is not None:
            self._check_options(list(args))
        return super().parse_known_args(args, namespace)

    def _check_options(self, args: list[str]) -> None:
        """Refuse unknown options first: argparse would rather miss the one that was meant."""
        known = self._option_string_actions
        for arg in args[: args.index("--")] if "--" in args else args:
            name, _, _ = arg.partition("=")
            if name.startswith("--") and not any(one.startswith(name) for one in known):
                near = checks.did_you_mean(name, known)
                self.error(f"{name} is not an option of this command. {near}".rstrip())

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = checks.did_you_mean(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}. {near}".rstrip(". ")) from None


def option(name: str) -> str:
    """Return the option for an argument's name: --half-life for half_life."""
    return _SPELLED.get(name) or f"--{name.replace('_', '-')}"


def as_options(message: str, names: Container[str]) -> str:
    """Replace `half_life` in a message by --half-life, for each of the names."""
    return re.sub(
        r"`(\w+)`", lambda found: option(found[1]) if found[1] in names else found[0], message
    )


def number(text: str) -> float:
    """Read 0.05, 2^-9, 1/4*0.001."""
    return _read(notation.number, text)


def whole(text: str) -> int:
    """Read 60000, 2^10, 5e4."""
    return _read(notation.whole, text)


def whole_or_test(text: str) -> int | str:
    """Read a whole number, or the word `test`."""
    try:
        return text if text == "test" else whole(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, nor the word test") from None


def _read(read: Callable[[str], _Number], text: str) -> _Number:
    try:
        return read(text)
    except ValueError as error:  # argparse would drop its message
        raise argparse.ArgumentTypeError(str(error)) from None
