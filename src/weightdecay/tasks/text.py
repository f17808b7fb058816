"""Text for a character model, made by code: small stories, sums and dates, written in words.

To foretell the next letter a model must spell, and beyond that look back: who had how many pears,
what is left of them, which day comes next.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count

import numpy as np
import torch
from torch import Tensor

from weightdecay.hashing import word
from weightdecay.tasks.task import Examples

ALPHABET = "\n ,.abcdefghijklmnopqrstuvwxy"
LENGTH = 64
TRAIN, TEST = 5_000, 500

_ONES = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PEOPLE = ("anna", "boris", "clara", "david", "emma", "felix", "greta", "hugo", "irene", "jonas")
_THINGS = ("apples", "pears", "plums", "cherries", "walnuts", "figs", "quinces", "peaches")
_Below = Callable[[int], int]


@cache
def load() -> tuple[Examples, Examples]:
    """Return the training and the test windows; a window's targets are its next characters."""
    return _windows(0, TRAIN), _windows(1, TEST)


def prepare(batch: Tensor, words: Tensor | None) -> Tensor:
    """Return the tokens as the whole numbers that an embedding looks up."""
    del words
    return batch.long()


def write(seed: int, length: int) -> str:
    """Return the first `length` characters of a text that never ends."""
    lines: list[str] = []
    missing = length
    for number in count():
        lines.append(_line(seed, number))
        missing -= len(lines[-1])
        if missing <= 0:
            break
    return "".join(lines)[:length]


def _windows(seed: int, number: int) -> Examples:
    text = write(seed, number * LENGTH + 1)
    tokens = torch.from_numpy(np.array([ALPHABET.index(letter) for letter in text], np.uint8))
    inputs, targets = (part.view(number, LENGTH) for part in (tokens[:-1], tokens[1:]))
    return Examples(inputs.clone(), targets.long())


def _line(seed: int, number: int) -> str:
    draws: Iterator[int] = (word(seed, number, part) for part in count())

    def below(limit: int) -> int:
        return next(draws) * limit >> 32

    forms = (_story, _story, _sum, _week)
    return forms[below(len(forms))](below) + ".\n"


def _story(below: _Below) -> str:
    day = below(len(_DAYS))
    giver, taker = _two(_PEOPLE, below)
    thing, other = _two(_THINGS, below)
    had, others = 2 + below(30), 2 + below(30)
    given = 1 + below(had)
    return (
        f"on {_DAYS[day]} {giver} had {_number(had)} {thing} and {_number(others)} {other}, and "
        f"gave {_number(given)} {thing} to {taker}. on {_after(day)} {giver} had "
        f"{_number(had - given)} {thing} and {_number(others)} {other}"
    )


def _sum(below: _Below) -> str:
    first, second = 1 + below(49), 1 + below(49)
    return f"{_number(first)} and {_number(second)} make {_number(first + second)}"


def _week(below: _Below) -> str:
    day, length = below(len(_DAYS)), 2 + below(4)
    days = [_DAYS[day], *(_after(day + step) for step in range(length))]
    return f"{_number(len(days))} days are {', '.join(days[:-1])} and {days[-1]}"


def _two(names: Sequence[str], below: _Below) -> tuple[str, str]:
    first = below(len(names))
    second = (first + 1 + below(len(names) - 1)) % len(names)
    return names[first], names[second]


def _after(day: int) -> str:
    return _DAYS[(day + 1) % len(_DAYS)]


def _number(value: int) -> str:
    if value < len(_ONES):
        return _ONES[value]
    tens, ones = divmod(value, 10)
    return f"{_TENS[tens - 2]} {_ONES[ones]}" if ones else _TENS[tens - 2]
