"""docs/paper.md names every claim that a study judges, and nothing that does not exist."""

import ast
import re
from pathlib import Path

from weightdecay.studies import STUDIES, NotAtThisScaleError, Study, scales

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "paper.md").read_text("utf-8")
#: A study in code, and a claim in quotes after it.
NAMED = set(re.findall(r'`([\w-]+)` "([^"]+)"', TEXT))


def wordings(study: Study) -> list[set[str]]:
    """Return each claim of a study in its words at every scale, which may differ in a number."""
    found: list[set[str]] = []
    for at in scales._SCALES.values():
        try:
            claims = study.claims(study.place(at))
        except NotAtThisScaleError:
            continue
        found += [set() for _ in claims[len(found) :]]  # some scales judge more
        for words, claim in zip(found, claims, strict=False):
            words.add(claim.words)
    return found


def test_every_claim_that_the_page_names_is_judged_by_that_study() -> None:
    known = {
        (study.name, words)
        for study in STUDIES.values()
        for several in wordings(study)
        for words in several
    }
    assert len(NAMED) > 20
    assert not NAMED - known


def test_every_claim_that_a_study_judges_is_named_on_the_page() -> None:
    """Supplements that repeat a figure have its claims; the page names them under the figure."""
    named = {words for _, words in NAMED}
    claims = [several for study in STUDIES.values() for several in wordings(study)]
    assert not [several for several in claims if not several & named]


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    there = {
        node.name
        for path in (ROOT / "tests").glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(named) > 15
    assert not named - there


def test_the_page_names_the_studies_and_no_others() -> None:
    named = set(re.findall(r"`((?:figure|supplement)-\d+|conjecture|exponents)`", TEXT))
    assert named == STUDIES.keys()


def test_the_page_says_which_scales_contain_the_papers_normalized_decays() -> None:
    """Of the figure over budgets, which the paper's 0.025 and 0.05 come from."""
    study, there = STUDIES["supplement-3"], set()
    for at in scales._SCALES.values():
        axes = {cell.normalized_decay for cell in study.cells(at)}
        known = {0.025, 0.05} & axes
        assert not known or {0.025, 0.05} <= axes
        there |= {at.folder} if known else set()
    assert there == {"cifar10-medium", "cifar10-paper", "imagenet32-paper"}
    said = "The grids of `cifar10` (medium and paper) and `imagenet32` contain both values."
    assert said in TEXT
