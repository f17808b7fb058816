"""`help` of an optimizer says what each of its arguments is."""

import inspect
import pydoc
import re
from typing import Any

import pytest

from tests.lion import Lion
from weightdecay import SGD, SGDW, SGDWR, Adam, AdamW, AdamWR
from weightdecay.optim.arguments import documented

CLASSES = [SGD, SGDW, SGDWR, Adam, AdamW, AdamWR, Lion]
every_class = pytest.mark.parametrize("cls", CLASSES)


@every_class
def test_every_argument_is_named_in_the_signature(cls: Any) -> None:
    parameters = inspect.signature(cls).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    assert kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    assert {"kernel", "rounding", "state_dtype"} <= parameters.keys()


@every_class
def test_help_has_one_line_for_every_argument_and_for_no_other(cls: Any) -> None:
    text = pydoc.plain(pydoc.render_doc(cls))
    listed = text.partition("Args:\n")[2].partition("Method resolution order")[0]
    lines = [line.strip(" |") for line in listed.splitlines() if line.strip(" |")]
    assert [line.partition(": ")[0] for line in lines] == list(inspect.signature(cls).parameters)
    assert all(re.fullmatch(r"\w+: \S.{8,}", line) for line in lines), lines
    assert all(len(line) <= 92 for line in lines)


def test_an_argument_without_a_line_is_noticed_when_the_class_is_made() -> None:
    def make() -> type:
        @documented()
        class Other(Lion):
            def __init__(self, params: Any, lr: float, *, sharpness: float = 1.0) -> None: ...

        return Other

    with pytest.raises(KeyError, match="sharpness"):
        make()
