"""`help` of an optimizer says what each of its arguments is."""

import inspect
import pydoc
import re
from typing import Any

import pytest

from tests.cases import parameter
from tests.lion import Lion
from weightdecay import SGD, SGDW, SGDWR, Adam, AdamW, AdamWR, Normalized
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


@pytest.mark.parametrize("cls", [SGDW, AdamW, Lion])
def test_help_shows_a_required_decay_without_a_default(cls: Any) -> None:
    decay = inspect.signature(cls).parameters["weight_decay"]
    assert decay.default is inspect.Parameter.empty
    assert decay.annotation == float | Normalized
    with pytest.raises(TypeError, match="`weight_decay` must be stated"):
        cls([parameter()], 0.1)
    cls([{"params": [parameter()], "weight_decay": 0.001}], 0.1)


@pytest.mark.parametrize("cls", [SGDW, AdamW])
def test_help_says_when_a_decay_is_not_required(cls: Any) -> None:
    told = " ".join(cls.__doc__.split())
    assert "`weight_decay` is required, unless every group has its own." in told


def test_an_argument_without_a_line_is_noticed_when_the_class_is_made() -> None:
    def make() -> type:
        @documented()
        class Other(Lion):
            def __init__(self, params: Any, lr: float, *, sharpness: float = 1.0) -> None: ...

        return Other

    with pytest.raises(KeyError, match="sharpness"):
        make()
