"""MODULE:NAME is found in the source, without running it."""

import sys
from pathlib import Path

import pytest

from weightdecay import references

SOURCE = """
raise RuntimeError("this must not run")
import os.path as paths
from math import sqrt as root
if paths:
    made: int = 3
for each in []:
    pass
class Kind: ...
async def later(): ...
def task(): ...
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shown.py").write_text(SOURCE)
    (tmp_path / "hidden.py").write_text("globals()['made'] = 3")
    (tmp_path / "starred.py").write_text("from math import *")
    (tmp_path / "wrong.py").write_text("def (")
    (tmp_path / "parent" / "child").mkdir(parents=True)
    (tmp_path / "parent" / "__init__.py").write_text("raise RuntimeError('nor this')")
    for folder in ("parent", "parent/child"):
        (tmp_path / folder / "leaf.py").write_text("def task(): ...")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(tmp_path))])


@pytest.mark.parametrize(
    "reference",
    [
        *(f"shown:{name}" for name in ("paths", "root", "made", "each", "Kind", "later", "task")),
        *(
            "hidden:made",
            "starred:sqrt",
            "wrong:task",
            "parent.leaf:task",
            "parent.child.leaf:task",
            "math:sqrt",
        ),
        *("torch.optim:NAdam", "tests.toys:toy"),
    ],
)
def test_what_a_module_has_or_may_have_is_accepted(reference: str) -> None:
    references.check("task", reference)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("shown:tsk", r"shown\.py, got 'shown:tsk', and 'tsk' is not in it\. Did you mean 'task'"),
        ("shown:nothing", "and 'nothing' is not in it.$"),
        ("shwon:task", r"there is no shwon\. Did you mean `shown`\?"),
        ("parent.lfea:task", r"there is no parent\.lfea\. Did you mean `leaf`\?"),
        ("shown.task:task", r"there is no shown\.task\."),
        ("math:sqrrt", "'sqrrt' is not in it. Did you mean 'sqrt'"),
        (":task", "MODULE:NAME, got ':task'"),
    ],
)
def test_what_it_has_not_is_refused_with_what_was_meant(reference: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        references.check("task", reference)
