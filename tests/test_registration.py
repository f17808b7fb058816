"""Settings are chosen, registered, and judged by other seeds: the whole way, and each step."""

import json
import math
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscapes import ended
from tests.test_cli_landscape import stored
from weightdecay import records
from weightdecay.cli import main
from weightdecay.records import Environment, Run, RunConfig, packed
from weightdecay.results import judged, landscapes
from weightdecay.results.choosing import SLOPES, Column, choose, chosen_otherwise
from weightdecay.results.estimate import student
from weightdecay.results.judging import MARGIN, error_of
from weightdecay.studies.judging_rules import RULES, changes
from weightdecay.studies.registered_when import when
from weightdecay.studies.registration import Method, Registration, named, register
from weightdecay.studies.registration_file import FILE, read, write
from weightdecay.studies.second_stage import Judged, judge
from weightdecay.sweeps import Store
from weightdecay.sweeps.grids import read_study

ROOT = Path(__file__).parents[1]
COMMITTED = ROOT / "results" / "cifar10-small"
with_results = pytest.mark.skipif(
    not COMMITTED.is_dir(), reason="a source distribution has no committed results"
)
CONFIG = RunConfig(
    task="mnist1d", model="mlp", algorithm="adamw", lr=1, weight_decay=0, epochs=10, batch=100
)
RATES = [2.0**k for k in range(-10, -4)]
DECAYS = [2.0**k for k in range(-12, -3)]


def bowl(lr: float, decay: float) -> float:
    """Return an error with its least at α = 2⁻⁷ and λ = 2⁻⁸, and a cliff above that decay."""
    x, z = math.log2(lr) + 7, math.log2(decay) + 8
    return 0.1 * (1 + 0.02 * x * x + (0.02 * z * z if z < 1 else 0.5 * z))


def runs_of(
    error: Any = bowl, *, seeds: int = 1, noise: float = 0.0, algorithm: str = "adamw", **other: Any
) -> list[Run]:
    draw = np.random.default_rng(0)
    way = "weight_decay" if algorithm.endswith("w") else "l2"
    found = []
    for lr in RATES:
        for decay in DECAYS:
            for seed in range(seeds):
                stated: dict[str, Any] = {"weight_decay": None, way: decay, **other}
                config = replace(CONFIG, algorithm=algorithm, lr=lr, seed=seed, **stated)
                value = error(lr, decay) * math.exp(noise * draw.normal())
                found.append(ended(config, test_error=value, validation_error=value))
    return found


def registered(*sides: list[Run], **options: Any) -> Registration:
    runs = [run for side in sides for run in side]
    return register(named(runs), runs, date="2026-11-16", **options)


def judged_by(made: Registration, first: list[Run], second: list[Run]) -> Judged:
    return judge(made, named(first), first, second)


def fresh(registration: Registration, **factor: float) -> list[Run]:
    """Return the second stage, each run with its error of `bowl` times its method's factor."""
    draw = np.random.default_rng(1)
    return [
        ended(
            cell,
            test_error=bowl(cell.lr, cell.weight_decay or cell.l2 or 0.0)
            * factor.get(cell.algorithm, 1.0)
            * math.exp(0.01 * draw.normal()),
        )
        for cell in registration.cells()
    ]


def test_a_basin_with_a_cliff_chooses_its_best_setting() -> None:
    [landscape] = landscapes(runs_of())
    choice = choose(landscape)
    assert choice.lr == 2**-7
    assert abs(math.log2(choice.decay) + 8) < 0.5
    assert choice.edges == ()


def test_a_parabola_in_the_logarithm_gives_its_vertex() -> None:
    """The vertex lies between two settings; small rises are not flattened."""
    off = 0.3

    def error(lr: float, decay: float) -> float:
        return 0.1 * (1 + 1e-4 * ((math.log2(decay) + 8 - off) ** 2 + (math.log2(lr) + 7) ** 2))

    [landscape] = landscapes(runs_of(error))
    assert math.log2(choose(landscape).decay) == pytest.approx(-8 + off, abs=0.01)


def test_a_diverged_run_is_never_chosen() -> None:
    """What it ended with may be low, if it ended early."""
    runs = [
        replace(run, records=(replace(run.records[-1], validation_error=0.01, diverged=True),))
        if run.config.weight_decay == 2**-8
        else run
        for run in runs_of()
    ]
    [landscape] = landscapes(runs)
    assert choose(landscape).decay != 2**-8
    assert choose(landscape).error > 0.1


@pytest.mark.parametrize(
    ("moved", "edges"),
    [
        ((0, 4), "highest decay"),
        ((0, -5), "lowest decay"),
        ((5, 0), "highest lr"),
        ((-5, 0), "lowest lr"),
    ],
)
def test_a_choice_at_an_edge_is_refused_or_withdrawn(moved: tuple[int, int], edges: str) -> None:
    runs = runs_of(lambda lr, decay: bowl(lr * 2.0 ** -moved[0], decay * 2.0 ** -moved[1]))
    with pytest.raises(ValueError, match=f"must lie inside its grid.*AdamW: {edges}"):
        registered(runs)
    [method] = registered(runs, at_edge=True).methods.values()
    assert method.choice.edges == (edges,)


def test_how_often_other_seeds_would_choose_otherwise() -> None:
    def share(**options: Any) -> float | None:
        [landscape] = landscapes(runs_of(**options))
        return chosen_otherwise(landscape, choose(landscape))

    assert share(seeds=1) is None
    assert share(seeds=3) == 0
    often = share(seeds=3, noise=0.1)
    assert often is not None
    assert often > 0.3


def test_the_file_holds_the_whole_registration(tmp_path: Path) -> None:
    made = registered(runs_of(), runs_of(algorithm="adam"), compare=[("Adam", "AdamW")])
    write(made, tmp_path)
    assert read(tmp_path) == made
    assert read_study(tmp_path / "judge.toml") == made.cells()


@pytest.mark.parametrize(
    ("left_out", "blocks"),
    [
        (lambda _: False, 1),
        (lambda run: run.config.seed == 1 and run.config.lr > 2**-8, 2),  # fewer seeds
        (lambda run: run.config.weight_decay == 2**-12 and run.config.lr > 2**-6, 2),  # a corner
        (lambda run: run.config.seed == 1, 1),  # seeds 0 and 2
    ],
)
def test_the_file_states_every_setting_that_was_searched_with_its_seeds(
    left_out: Any, blocks: int, tmp_path: Path
) -> None:
    runs = [run for run in runs_of(seeds=3, noise=0.01) if not left_out(run)]
    write(registered(runs), tmp_path)
    [method] = read(tmp_path).methods.values()
    stated = [
        (lr, decay, seed)
        for block in method.grid
        for lr in block.lrs
        for decay in block.decays
        for seed in block.seeds
    ]
    trained = [(run.config.lr, run.config.weight_decay, run.config.seed) for run in runs]
    assert sorted(stated) == sorted(trained)
    assert len(method.grid) == blocks


def _without_grids(text: str) -> str:
    return re.sub(r"^grid = \[.*?^\]\n", "", text, flags=re.DOTALL | re.MULTILINE)


def _spaced(text: str) -> str:
    """Return TOML with other spaces and comments, and its tables in another order."""
    head, *tables = text.replace(" = ", "=").split("\n[[chosen]]")
    head, rules = head.split("\n[rules]")
    head, seen = head.split("\n[first_stage]")
    chosen = "".join(f"\n[[chosen]]  # a comment{table}" for table in tables)
    return f"# Mine.\n{head}\n\n[rules]{rules}\n[first_stage]{seen}\n{chosen}\n"


@pytest.mark.parametrize(
    ("change", "edited"),
    [
        (lambda text: text, False),
        (_spaced, False),
        (lambda text: text.replace("\n", "\r\n"), False),
        (lambda text: text.replace("below ln 1.03", "below ln 1.3"), True),  # a rule
        (lambda text: text.replace('"1000..1023"', '"1000..1022"'), True),  # seeds that judge
        (lambda text: text.replace("\nlr = 0.0078125", "\nlr = 0.015625"), True),  # a choice
        (lambda text: text.replace("lrs = [0.0009765625, ", "lrs = ["), True),  # a grid
        (lambda text: text.replace('["Adam", "AdamW"]', '["AdamW", "Adam"]'), True),
        (lambda text: text.replace("date = 2026-11-16", "date = 2026-11-15"), True),
        (lambda text: text.replace("\nsha256 = ", "\n# sha256 = ", 1), True),
        (lambda text: _without_grids(text.replace("\nsha256 = ", "\n# sha256 = ", 1)), True),
    ],
)
def test_a_registration_that_was_changed_after_it_was_written_is_named(
    change: Any, edited: bool, tmp_path: Path
) -> None:
    first = [*runs_of(), *runs_of(algorithm="adam")]
    write(registered(first, compare=[("Adam", "AdamW")], carry=0), tmp_path)
    path = tmp_path / FILE
    text = path.read_text("utf-8")
    path.write_bytes(change(text).encode())
    made = read(tmp_path)
    assert made.edited == edited
    told = judged_by(made, first, fresh(made)).changed
    assert ("registered.toml was changed after it was written" in " ".join(told)) == edited
    assert bool(told) == edited


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({'[["Adam", "AdamW"]]': '[["Adam", "Adm"]]'}, "no setting is chosen for Adm"),
        ({'name = "AdamW"': 'name = "Adam"'}, "two chosen settings have the same name"),
        ({"[rules]": "[others]", "date": "rules = 'x'\ndate"}, "`rules` must be a table"),
        ({"commit = ": "commit = 5 # "}, "`commit` must be a text, got 5"),
        ({"sha256 = ": "sha256 = 5 # "}, "`sha256` must be a text, got 5"),
        ({"better = ": "better = 3 # "}, "the rule `better` must be a text or a list, got 3"),
    ],
)
def test_a_registration_that_says_what_none_says_is_refused(
    changes: dict[str, str], why: str, tmp_path: Path
) -> None:
    first = [*runs_of(), *runs_of(algorithm="adam")]
    write(registered(first, compare=[("Adam", "AdamW")], carry=0), tmp_path)
    path = tmp_path / FILE
    text = path.read_text("utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match="must be what `weightdecay register` wrote") as error:
        read(tmp_path)
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda one: replace(one, choice=replace(one.choice, edges=("highest lr",))),
            "At an edge of the grid of AdamW, registered: highest lr; now: none.",
        ),
        (
            lambda one: replace(one, choice=replace(one.choice, columns=_halved(one))),
            "Some best decays of AdamW are not those that were registered.",
        ),
        (
            lambda one: replace(one, grid=(replace(one.grid[0], seeds=(0, 1)),)),
            "The grid of AdamW is not the one that was registered.",
        ),
    ],
)
def test_what_follows_from_the_first_stage_is_compared_with_what_is_registered(
    change: Any, told: str
) -> None:
    """A new hash hides that a file was edited, but not what the runs say."""
    first = runs_of()
    made = registered(first, carry=0)
    other = replace(made, methods={"AdamW": change(made.methods["AdamW"])})
    assert judged_by(made, first, fresh(made)).changed == []
    assert judged_by(other, first, fresh(made)).changed == [told]


def _halved(method: Method) -> dict[float, Column]:
    columns = dict(method.choice.columns)
    lr = min(columns)
    return {**columns, lr: replace(columns[lr], decay=columns[lr].decay / 2)}


@with_results
def test_files_from_before_there_was_a_hash_are_read_and_nothing_is_said_of_it() -> None:
    made = read(COMMITTED / "figure-2")
    assert not made.edited
    assert made.sha256 == ""
    assert when(made).count("sha256") == 0


AGAIN = sorted(path.parent for path in COMMITTED.glob("*/earlier.toml"))


@with_results
def test_every_earlier_registration_is_listed() -> None:
    listed = {one.file for folder in AGAIN for one in read(folder).earlier}
    assert listed == {path.name for path in COMMITTED.glob("*-registered.toml")} != set()


@pytest.mark.parametrize("folder", AGAIN, ids=lambda folder: folder.name)
def test_what_was_registered_earlier_is_what_is_stated_again(folder: Path) -> None:
    """Settings and seeds are those of the file that was committed before they were trained."""
    made = read(folder)
    for one in made.earlier:
        said = tomllib.loads((COMMITTED / one.file).read_text("utf-8"))
        chosen = said["chosen"]
        settings = {
            (each["lr"], decay)
            for each in (chosen if isinstance(chosen, list) else chosen.values())
            for way in ("l2", "weight_decay", "normalized_decay")
            if (decay := each.get(way)) is not None
        }
        choices = [made.methods[name].choice for name in one.methods]
        assert {(choice.lr, choice.decay) for choice in choices} <= settings
        assert str(said["date"]) == one.date
        assert said["judging"]["seeds"] == f"{made.judges[0]}..{made.judges[-1]}"
        assert bool(one.carried) == ("carrying" in said)
        assert {name for pair in one.compared for name in pair} <= made.methods.keys()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("folder", AGAIN, ids=lambda folder: folder.name)
def test_git_has_an_earlier_registration_before_the_one_that_states_it_again(folder: Path) -> None:
    def git(*words: str) -> str:
        asked = ["git", "-C", str(ROOT), *words]
        told = subprocess.run(asked, capture_output=True, text=True, check=False)
        return told.stdout.strip() if told.returncode == 0 else "no"

    again = git("log", "--format=%H", "--diff-filter=A", "--", str(folder / FILE))
    for one in read(folder).earlier:
        if not again or git("cat-file", "-t", one.commit) != "commit":
            pytest.skip("this is not a clone with its whole history")
        added = git("show", "--format=", "--name-status", "--diff-filter=A", one.commit)
        assert "registered.toml" in added
        assert git("merge-base", "--is-ancestor", one.commit, again) == ""


#: An earlier registration, of a file that is not there and a method that is not registered.
EARLIER = """\
[[registered]]
file = "a.toml"
date = 2026-11-16
commit = "abc"
methods = ["Adm"]
carried = []
compared = []
"""


@pytest.mark.parametrize(
    "text",
    [
        "registered = 3",
        "[[registered]]\nfile = 'a.toml'",
        "not TOML",
        EARLIER.replace("Adm", "AdamW"),
        EARLIER.replace("a.toml", "there.toml"),
        EARLIER.replace("a.toml", "there.toml").replace('["Adm"]', '"AdamW"'),
        EARLIER.replace("a.toml", "there.toml").replace('"abc"', "5"),
    ],
)
def test_a_list_of_earlier_registrations_that_cannot_be_read_is_refused(
    text: str, tmp_path: Path
) -> None:
    folder = tmp_path / "figure"
    folder.mkdir()
    (tmp_path / "there.toml").touch()
    write(registered(runs_of()), folder)
    path = folder / "earlier.toml"
    path.write_text(EARLIER.replace("a.toml", "there.toml").replace("Adm", "AdamW"))
    assert len(read(folder).earlier) == 1
    path.write_text(text)
    with pytest.raises(ValueError, match=r"earlier.toml must list what was registered earlier, ea"):
        read(folder)


@with_results
def test_what_was_added_to_an_earlier_registration_is_told_apart() -> None:
    """Comparisons of seeds that were known are no registration."""
    told = when(read(COMMITTED / "figure-1"))
    assert told.startswith("These settings were registered in figure-1-registered.toml (2026-11-16")
    assert "commit 31329590e16e), before their seeds were trained: adamw, a fixed rate;" in told
    assert told.endswith(
        "comparisons, of seeds that were trained already: adam, cosine − adam, a fixed rate; "
        "adamw, cosine − adamw, a fixed rate."
    )
    told = when(read(COMMITTED / "figure-2"))
    assert "It added these settings, before their seeds were trained: adam, λ = 0; sgd, λ" in told
    assert "already" not in told
    for folder in AGAIN:
        assert "(commit 7a2d078b70b2), before" not in when(read(folder))


def test_no_seed_that_chose_judges() -> None:
    runs = [replace(run, config=replace(run.config, seed=1003)) for run in runs_of()]
    made = registered(runs)
    assert {run.config.seed for run in runs}.isdisjoint(made.judges + made.carriers)
    assert set(made.judges).isdisjoint(made.carriers)


def test_methods_that_differ_in_the_algorithm_alone_are_compared() -> None:
    longer = runs_of(epochs=20)
    made = registered(runs_of(), runs_of(algorithm="adam"), longer)
    assert len(made.methods) == 3
    [pair] = made.compared
    assert {made.methods[name].config.algorithm for name in pair} == {"adam", "adamw"}
    assert {made.methods[name].config.epochs for name in pair} == {10}


def test_a_name_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="`compare` must be one of 'AdamW', got 'AdamX'"):
        registered(runs_of(), compare=[("AdamW", "AdamX")])


def test_fresh_seeds_judge_and_carried_decays_cost_what_the_landscape_says() -> None:
    first = [*runs_of(), *runs_of(algorithm="adam")]
    made = registered(first)
    seen = judged_by(made, first, fresh(made, adam=1.1))
    assert not seen.changed
    [judgement] = seen.compared.values()
    assert abs(judgement.ratio.value) == pytest.approx(math.log(1.1), abs=0.02)
    for name, method in made.methods.items():
        for s in SLOPES:
            moved = [one for one in method.choice.carried() if one.s == s]
            own = method.choice.columns
            factor = 1.1 if method.config.algorithm == "adam" else 1.0
            truth = factor * np.mean(
                [
                    bowl(one.used_at, one.decay) - bowl(one.used_at, own[one.used_at].decay)
                    for one in moved
                ]
            )
            found = seen.regrets[name].costs[s]
            assert found.low - 0.002 <= truth <= found.high + 0.002, (name, s)


@pytest.mark.parametrize(("carry", "why"), [(0, "registered"), (1, "registered"), (2, "trained")])
def test_why_no_carried_decay_was_judged(carry: int, why: str) -> None:
    first = runs_of()
    made = registered(first, carry=carry)
    assert f"were {why}" in judged_by(made, first, []).regrets["AdamW"].why


def test_what_differs_from_the_registration_is_told() -> None:
    first = runs_of()
    made = registered(first, carry=0)
    second = fresh(made)
    assert judged_by(made, first, second).changed == []
    better = [
        replace(run, records=(replace(run.records[-1], validation_error=0.01),))
        if (run.config.lr, run.config.weight_decay) == (2**-6, 2**-9)
        else run
        for run in first
    ]
    [changed, chooses, decays] = judged_by(made, better, second).changed
    told = "The first stage has changed: it"
    assert changed == f"{told} still has 54 runs, but some are others, or their errors differ."
    fewer = judged_by(made, first[1:], second).changed[0]
    assert fewer == f"{told} had 54 runs, and now has 53."
    assert chooses.startswith("The first stage would now choose α = 0.015625")
    assert decays == "Some best decays of AdamW are not those that were registered."
    [missing] = judged_by(made, first, second[1:]).changed
    assert missing == "1 of 24 registered runs are not trained yet."
    stranger = replace(second[0], config=replace(second[0].config, seed=7))
    [told] = judged_by(made, first, [*second, stranger]).changed
    assert told == "1 runs were not registered, and are left out."


def test_other_versions_that_trained_are_named_with_their_commits() -> None:
    first = runs_of()
    made = replace(registered(first, carry=0), commit=40 * "a" + "+", source="registered")
    places = {"device": "cpu", "torch": "2", "python": "3", "version": "1"}
    own = Environment(**places, commit=40 * "a", source="registered")
    later = Environment(**places, commit=40 * "b", source="later")
    other = Environment(**places, commit="unknown", source="other")
    by = [*(7 * [later]), own.then(later), *(3 * [other]), *(13 * [own])]
    second = [replace(run, environment=by[n]) for n, run in enumerate(fresh(made))]
    [told] = judged_by(made, first, second).changed
    assert told == (
        "The second stage was trained by another version of weightdecay. Registered: source "
        "registered (commit aaaaaaaaaaaa+). Trained: 7 runs by source later (commit bbbbbbbbbbbb); "
        "3 runs by source other; 1 run by source registered + later (commit aaaaaaaaaaaa + "
        "bbbbbbbbbbbb)."
    )
    same = [replace(run, environment=own) for run in second]
    assert not judged_by(made, first, same).changed
    stranger = replace(second[0], config=replace(second[0].config, seed=7))
    assert len(judged_by(made, first, [*same, stranger]).changed) == 1, "only what judges counts"


def test_rules_that_have_changed_since_are_named_with_what_they_were() -> None:
    first = runs_of()
    made = registered(first, carry=0)
    assert made.rules == RULES
    before = {**RULES, "as_good": "the upper end is below ln 1.01", "slopes": [0.0], "luck": "yes"}
    del before["edge"]
    told = judged_by(replace(made, rules=before), first, fresh(made)).changed
    is_now = f'It is now: "… end is below ln {MARGIN}".'
    assert told == [
        f'The rule `as_good` has changed. It was: "… end is below ln 1.01". {is_now}',
        'The rule `slopes` has changed. It was: "0.0". It is now: "-1.0, -0.5, 0.0, 0.5, 1.0".',
        "The registration does not state these rules: edge.",
        "These registered rules are not used any more: luck.",
    ]


def test_a_long_rule_is_shown_shortly_where_it_differs() -> None:
    other = str(RULES["choice"]).replace("three digits", "two digits")
    [told] = changes({**RULES, "choice": other})
    assert "decay, to two digits, or the lowest …" in told
    assert "decay, to three digits, or the lowest …" in told
    assert len(told.split()) < 40
    [told] = changes({**RULES, "choice": " ".join(100 * ["otherwise"])})
    assert len(told.split()) < 100


@with_results
def test_committed_registrations_say_that_the_interval_has_another_form_now() -> None:
    """Since 18 November 2026, the seeds' t does not multiply the test set's error."""
    made = [read(path.parent) for path in (ROOT / "results").glob("*/*/registered.toml")]
    earlier = [one for one in made if not one.sha256]
    assert len(earlier) > 2
    assert not any(changes(one.rules) for one in made if one.sha256)
    for one in earlier:
        [told] = [line for line in changes(one.rules) if "`interval`" in line]
        assert "Its variance includes that of the test set" in told
        assert "half width is added" in told


def test_the_interval_is_the_registered_one() -> None:
    """The words of the rule, computed: squares of two half widths add up."""
    draw = np.random.default_rng(0)
    sides = [
        [
            ended(
                replace(CONFIG, lr=0.1, seed=seed, keep_missed=True),
                test_error=float(row.mean()),
                missed=packed(row.tolist()),
            )
            for seed, row in enumerate(draw.random((4, 900)) < draw.random(900) * chance)
        ]
        for chance in (0.5, 0.6)
    ]
    found = judged(*sides)
    assert found.of_test_set is not None
    assert found.of_test_set[0] > 0
    errors = np.array([[run.last.test_error for run in side] for side in sides], dtype=float)
    ratios = np.log(errors[0] / errors[1])
    own = student(3) * ratios.std(ddof=1) / 2
    shared = 1.96 * math.sqrt(found.of_test_set[0])
    half = (found.ratio.high - found.ratio.low) / 2
    assert found.ratio.value == pytest.approx(ratios.mean())
    assert half == pytest.approx(math.hypot(own, shared), rel=1e-4)


#: What the rules come to on fixed data. If one of these numbers changes because a rule does, its
#: words in `judging_rules` must change too: pages compare them with those that were registered.
COMPUTED = {
    "choice": 0.00307,
    "interval": 3.36953955,
    "test_set": 0.738627149,
    "error": 0.318,
    "regret": 0.00223986359,
    "regret_interval": 0.00434327251,
}


def computed() -> dict[str, float]:
    """Judge two methods by runs whose errors and missed examples are waves, not noise."""
    first = [*runs_of(), *runs_of(algorithm="adam")]
    first[0] = ended(first[0].config, validation_error=0.9, test_error=0.9, diverged=True)
    made = registered(first, seeds=4, carry=3)
    second = []
    for at, cell in enumerate(made.cells()):
        decay = cell.weight_decay or cell.l2 or 0.0
        error = bowl(cell.lr, decay) * (1 + 0.02 * math.sin(3 * at))
        wave = 7 if cell.l2 is None else 11
        bits = [math.sin(n // 64 * wave) + 0.2 * math.sin(n * (5 + at)) > 0.8 for n in range(2000)]
        second.append(ended(cell, test_error=error, missed=packed(bits)))
    lost = [ended(run.config, diverged=True) if n == 1 else run for n, run in enumerate(second)]
    seen, worse = (judged_by(made, first, runs) for runs in (second, lost))
    [judgement] = seen.compared.values()
    regret = seen.regrets["AdamW"].costs[0.5]
    assert judgement.of_test_set is not None
    return {
        "choice": made.methods["AdamW"].choice.decay,
        "interval": judgement.ratio.high - judgement.ratio.low,
        "test_set": judgement.of_test_set[0],
        "error": max(error for name in made.methods for error in worse.errors(name)),
        "regret": regret.value,
        "regret_interval": regret.high - regret.low,
    }


@pytest.mark.parametrize("name", COMPUTED)
def test_a_number_changes_only_together_with_the_words_of_its_rule(name: str) -> None:
    assert name in RULES
    assert computed()[name] == pytest.approx(COMPUTED[name], rel=1e-6)


@pytest.mark.parametrize(("cycle", "highest"), [(9, 1.574), (10, 3.148), (None, 3.148)])
def test_no_normalized_decay_is_carried_to_a_decay_of_1_or_more(
    cycle: int | None, highest: float, tmp_path: Path
) -> None:
    """With cycles of 9 updates λ = λ_norm / 3: a λ_norm of 3 would remove whole weights."""
    runs = [
        ended(
            replace(run.config, weight_decay=None, normalized_decay=2.0**8 * decay),
            validation_error=run.last.validation_error,
            cycle_updates=cycle,
        )
        for run in runs_of()
        if (decay := run.config.weight_decay)
    ]
    made = registered(runs)
    write(made, tmp_path)
    for one in (made, read(tmp_path)):
        found = max(cell.normalized_decay or 0 for cell in one.cells())
        assert found == pytest.approx(highest)


def test_a_second_stage_that_was_seen_is_not_registered_again(tmp_path: Path) -> None:
    (tmp_path / "judging" / "log").mkdir(parents=True)
    assert main(["register", str(tmp_path)]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 1}, "`seeds` must be"),
        ({"seeds": 2000}, "At most 1000 seeds"),
        ({"compare": [("AdamW", "AdamW")]}, "must name two landscapes, got 'AdamW' twice"),
    ],
)
def test_a_registration_that_could_judge_nothing_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        registered(runs_of(), **options)


def test_landscapes_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="must differ in their names"):
        registered(runs_of(), runs_of(evaluate_every=2))


def test_a_higher_rate_at_which_all_diverged_is_inside_the_grid() -> None:
    runs = [
        replace(run, records=(replace(run.last, validation_error=0.9, diverged=True),))
        if run.config.lr > 2**-7
        else run
        for run in runs_of()
    ]
    [landscape] = landscapes(runs)
    assert choose(landscape).edges == ()


def test_a_diverged_judge_counts_as_the_worst_of_all_runs_whatever_the_metric() -> None:
    """An error that means guessing among ten classes would be a victory at a loss of four."""
    first = [*runs_of(), *runs_of(algorithm="adam")]
    first = [
        replace(run, records=(replace(run.last, test_error=40 * (run.last.test_error or 0)),))
        for run in first
    ]
    made = registered(first)
    second = [
        replace(
            run,
            records=(
                replace(
                    run.last,
                    test_error=None
                    if run.config.algorithm == "adamw"
                    else 4.0 + run.config.seed / 1e5,
                    diverged=run.config.algorithm == "adamw",
                ),
            ),
        )
        for run in fresh(made)
    ]
    seen = judged_by(made, first, second)
    [(pair, judgement)] = seen.compared.items()
    sign = 1 if made.methods[pair[0]].config.algorithm == "adamw" else -1
    assert sign * judgement.ratio.value > 0


def test_runs_that_are_left_out_do_not_say_what_a_diverged_judge_counts_as() -> None:
    first = [*runs_of(), *runs_of(algorithm="adam")]
    made = registered(first, carry=0)
    second = fresh(made)
    second[0] = replace(second[0], records=(replace(second[0].last, diverged=True),))
    config = replace(second[1].config, seed=7)
    stranger = replace(
        second[1], config=config, records=(replace(second[1].last, test_error=0.95),)
    )
    alone, beside = (judged_by(made, first, runs) for runs in (second, [*second, stranger]))
    assert beside.worst == alone.worst
    assert beside.compared == alone.compared


def test_methods_that_always_diverged_are_not_as_good_as_each_other() -> None:
    first = [*runs_of(), *runs_of(algorithm="adam")]
    made = registered(first, carry=0)
    second = [replace(run, records=(replace(run.last, diverged=True),)) for run in fresh(made)]
    seen = judged_by(made, first, second)
    assert seen.compared == {}
    assert [line for line in seen.changed if line.endswith("be compared. Every run diverged.")]


def of_two_tasks(runs: list[Run]) -> list[Run]:
    """Return the runs, and the same of a task whose own metric is thirty times as large."""
    return [*runs, *(_of_text(run) for run in runs)]


def _of_text(run: Run) -> Run:
    config = replace(run.config, task="text", model="transformer")
    error = 30 * (run.last.test_error or 0)
    return ended(config, test_error=error, validation_error=error, metric="bits")


def judges_of_two_tasks(made: Registration) -> list[Run]:
    """Return the second stage, in which one run of the first task diverged."""
    second = [_of_text(run) if run.config.task == "text" else run for run in fresh(made)]
    at = next(place for place, run in enumerate(second) if run.config.task == "mnist1d")
    second[at] = ended(second[at].config, test_error=0.9, diverged=True)
    return second


def test_a_diverged_judge_counts_as_the_worst_of_its_own_task() -> None:
    first = of_two_tasks(runs_of())
    made = registered(first)
    seen = judged_by(made, first, judges_of_two_tasks(made))
    [name] = [name for name, one in made.methods.items() if one.config.task == "mnist1d"]
    worst = max(run.last.test_error or 0 for run in first if run.config.task == "mnist1d")
    assert max(seen.errors(name)) == pytest.approx(worst)


def test_each_task_is_judged_in_its_own_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A loss of 3 is no error of 300 %."""
    stored(of_two_tasks(runs_of()), tmp_path)
    said_by(capsys, "register", tmp_path)
    stored(judges_of_two_tasks(read(tmp_path)), tmp_path / "judging")
    said = said_by(capsys, "judge", tmp_path)
    assert "test error or bits" in said
    [of_error, of_bits] = [line for line in said.splitlines() if line.endswith(" 24")]
    if "task text" in of_error:
        of_error, of_bits = of_bits, of_error
    assert "%" in of_error
    assert "%" not in of_bits
    assert float(of_bits.split()[-2]) == pytest.approx(3.0, abs=0.1)


def test_seeds_cannot_make_up_for_a_small_test_set() -> None:
    """All that is uncertain comes from the examples: no number of seeds shows 1 %."""
    draw = np.random.default_rng(0)
    missed = [draw.random(400) < 0.2 for _ in range(2)]
    sides = [
        [
            ended(
                replace(CONFIG, lr=0.1, seed=seed, keep_missed=True),
                test_error=float(row.mean()),
                missed=packed(row.tolist()),
            )
            for seed in range(6)
        ]
        for row in missed
    ]
    assert judged(*sides).needed(0.01) == math.inf
    assert judged(*sides).needed(9.0) < 6


def test_the_detectable_difference_is_seen_in_four_of_five_cases() -> None:
    draw = np.random.default_rng(0)

    def compare(effect: float) -> Any:
        sides = [
            [
                ended(replace(CONFIG, lr=0.1, seed=seed), test_error=float(error))
                for seed, error in enumerate(0.1 * np.exp(by + 0.05 * draw.normal(size=10)))
            ]
            for by in (effect, 0.0)
        ]
        return judged(*sides)

    least = float(np.mean([compare(0.0).detectable for _ in range(200)]))
    seen = np.mean([compare(-least).better for _ in range(400)])
    assert 0.70 < seen < 0.88


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished sweep of AdamW and Adam."""
    return stored([*runs_of(), *runs_of(algorithm="adam")], tmp_path / "folder")


def said_by(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Return what a command prints, whatever it ends with."""
    main([*map(str, words)])
    told = capsys.readouterr()
    return told.out + told.err


def test_each_command_says_which_setting_it_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lowest = "Best: the lowest single cell. `weightdecay landscape` recommends a setting from all"
    assert lowest in said_by(capsys, "status", folder)
    told = said_by(capsys, "register", folder)
    assert told.startswith("Chosen from smoothed errors, to be judged by other seeds:\n  Adam")
    assert "\n  AdamW: α = " in told


def test_a_second_stage_has_no_best_setting_and_no_edges(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["register", str(folder)])
    second = stored(fresh(read(folder)), folder / "judging")
    trained: list[str | Path] = ["sweep", folder / "judge.toml", "--out", second]
    trained += ["--on", "here", "--device", "cpu"]
    status: list[str | Path] = ["status", second]
    for words in (status, trained):
        capsys.readouterr()
        told = said_by(capsys, *words)
        assert f"choose none: run `weightdecay judge {folder}`.\n" in told
        assert "edge" not in told
        assert "best" not in told
        assert json.loads(said_by(capsys, *words, "--json", "--quiet"))["best"] is None
    assert json.loads(said_by(capsys, "status", folder, "--json"))["best"]


def test_no_setting_is_recommended_from_seeds_that_only_judge(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["register", str(folder)])
    second = stored(fresh(read(folder)), folder / "judging")
    capsys.readouterr()
    assert main(["landscape", str(second)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"choose none: run `weightdecay judge {folder}`.\n" in told.err


def test_what_carriers_missed_is_not_exported_as_only_comparisons_need_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["register", str(folder), "--seeds", "2", "--carry", "2"])
    made = read(folder)
    bits = packed([True, False] * 8)
    second = [ended(cell, test_error=0.1, missed=bits) for cell in made.cells()]
    stored(second, folder / "judging")
    main(["export", str(folder / "judging"), str(folder / "judging.csv")])
    found = {run.config: run.last.missed for run in records.read(folder / "judging.csv")}
    assert found == {cell: bits if cell.seed in made.judges else None for cell in made.cells()}


@pytest.mark.parametrize("in_git", [True, False])
def test_in_a_git_work_tree_register_says_to_commit_before_training(
    in_git: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if in_git:
        (folder.parent / ".git").write_text("gitdir: elsewhere\n")
    told = said_by(capsys, "register", folder)
    assert ("Commit the first before you train" in told) == in_git
    assert f"weightdecay sweep {folder / 'judge.toml'}" in told


def test_the_docs_list_every_rule_and_every_key_that_is_registered(folder: Path) -> None:
    main(["register", str(folder)])
    said = tomllib.loads((folder / FILE).read_text("utf-8"))
    page = (ROOT / "docs" / "comparing.md").read_text("utf-8")
    section = page.partition("## What is registered")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`(\w+)`", section))
    assert listed >= {*said, *said["rules"], "grid", "columns", "settings"}
    assert said["rules"].keys() == RULES.keys()


def test_commands_that_use_a_changed_registration_say_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said_by(capsys, "register", folder, "--compare", "AdamW", "Adam")
    made = read(folder)
    assert f"The hash of what is registered is {made.sha256}." in told
    stored(fresh(made), folder / "judging")
    commands: list[list[str | Path]] = [["judge", folder], ["landscape", folder]]
    edited = "registered.toml was changed after it was written"
    for words in commands:
        assert edited not in said_by(capsys, *words)
    assert f"sha256 {made.sha256[:12]}" in said_by(capsys, "judge", folder)
    text = (folder / FILE).read_text("utf-8")
    (folder / FILE).write_text(text.replace('"AdamW", "Adam"', '"Adam", "AdamW"'), "utf-8")
    for words in commands:
        assert edited in said_by(capsys, *words)
    assert main(["judge", str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["registered"]["edited"]


def test_every_decay_that_is_judged_says_in_which_convention_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ", L2 = 0.0" in said_by(capsys, "register", folder)
    stored(fresh(read(folder)), folder / "judging")
    rows = [line.split() for line in said_by(capsys, "judge", folder).splitlines()]
    assert sorted(row[:3] for row in rows[1:3]) == [
        ["Adam", "0.0078125", "L2"],
        ["AdamW", "0.0078125", "λ"],
    ]


def test_the_help_says_which_of_two_methods_a_negative_difference_favours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["register", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "as ONE − OTHER: a negative difference means that ONE is better" in said
    first = [*runs_of(), *runs_of(algorithm="adam")]
    made = registered(first, compare=[("AdamW", "Adam")])
    [judgement] = judged_by(made, first, fresh(made, adam=1.1)).compared.values()
    assert judgement.ratio.value < 0
    assert judgement.better


@pytest.mark.parametrize("command", ["register", "judge"])
def test_a_table_is_refused_with_what_can_be_done_with_it(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("lr,weight_decay,error\n0.1,0.01,0.3\n")
    told = said_by(capsys, command, table)
    assert "FOLDER must be the folder of a sweep" in told
    assert f"`weightdecay landscape {table}` recommends a setting from it." in told
    assert "--convention" not in told
    study = table.rename(tmp_path / "study.toml")
    assert f"Train it first: `weightdecay sweep {study} " in said_by(capsys, command, study)


@pytest.mark.parametrize("command", ["register", "judge"])
def test_a_tuners_folder_is_refused_with_what_can_be_done_with_it(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = stored(runs_of(), tmp_path / "tuned")
    (own / "tuner.json").touch()
    told = said_by(capsys, command, own)
    assert f"FOLDER must be the folder of a sweep, whose grid chooses a setting, and {own}" in told
    assert f"`weightdecay status {own}` says what the tuner recommends" in told
    assert not (own / FILE).exists()


def test_scattered_settings_are_refused_without_internals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = np.random.default_rng(0)
    own = [
        ended(replace(CONFIG, lr=lr, weight_decay=decay))
        for lr, decay in 2.0 ** draw.uniform(-10, -4, (20, 2))
    ]
    told = said_by(capsys, "register", stored(own, tmp_path / "random"))
    assert "A choice needs a grid of learning rates and decays, got 20 scattered settings." in told
    assert "<" not in told


@pytest.mark.parametrize("command", ["register", "judge"])
def test_seeds_that_judge_are_refused_with_the_folder_that_they_judge(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["register", str(folder)])
    second = stored(fresh(read(folder)), folder / "judging")
    capsys.readouterr()
    told = said_by(capsys, command, second)
    assert told.endswith(f"judge it. Run `weightdecay judge {folder}`.\n")
    assert not (second / "registered.toml").exists()


def test_what_reproduce_registered_is_refused_with_the_command_that_judges_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = folder / "figure-2"
    figure.mkdir()
    first = runs_of()
    write(registered(first), figure)
    stored(fresh(read(figure)), folder / "judging")
    for place in (figure, folder):
        told = said_by(capsys, "judge", place)
        assert "Run the same `weightdecay reproduce` again" in told
        assert f"writes {figure / 'report.html'}." in told
    told = said_by(capsys, "status", folder / "judging")
    assert "choose none: run `weightdecay reproduce`." in told


def test_a_landscape_shows_what_fresh_seeds_have_judged_once_they_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stored(runs_of(seeds=2), tmp_path / "sweep")

    def advice() -> dict[str, Any]:
        assert main(["landscape", str(folder), "--json"]) == 0
        [one] = json.loads(capsys.readouterr().out)["landscapes"]
        found: dict[str, Any] = one["recommendation"]
        return found

    assert advice()["costs_from"] == "estimate"
    assert main(["register", str(folder), "--seeds", "2", "--carry", "4", "--quiet"]) == 0
    capsys.readouterr()
    assert advice()["costs_from"] == "estimate"
    made = read(folder)
    stored(fresh(made), folder / "judging")
    text = (folder / FILE).read_text("utf-8")
    (folder / FILE).write_text(text.replace('name = "AdamW"', 'name = "mine"'), "utf-8")
    found = advice()
    assert found["costs_from"] == "fresh seeds", "also under another name"
    assert set(found["costs"]) == {f"{s:g}" for s in SLOPES}
    assert len(found["costs_by_pair"]) == 4
    assert found["rule"] == 0
    assert found["sentence"].startswith("If you multiply α by 4, leave λ as it is.")


@pytest.mark.slow
def test_the_committed_comparison_on_cifar10_comes_out_of_the_general_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same settings as were registered, and the numbers on the page."""
    registered = shutil.ignore_patterns("*.toml", "judging")
    shutil.copytree(COMMITTED / "figure-2", tmp_path / "copy", ignore=registered)
    folder = str(tmp_path / "copy")
    assert main(["register", folder, "--compare", "AdamW", "Adam", "--json"]) == 0
    chosen = {one["name"]: one for one in json.loads(capsys.readouterr().out)["chosen"]}
    assert (chosen["AdamW"]["lr"], chosen["AdamW"]["decay"]) == (0.00125, 0.00179)
    assert (chosen["SGD"]["lr"], chosen["SGD"]["decay"]) == (0.03125, 0.00739)
    assert main(["judge", folder, "--second", str(COMMITTED / "figure-2" / "judging")]) == 1
    told = capsys.readouterr().out
    page = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    assert "−8.03 % [−9.48, −6.57]" in told
    assert "−8.0 % [−9.5, −6.6]" in page
    assert "+0.04 [−0.11, +0.20]" in told
    assert "0.04 [−0.11, 0.20]" in page
    assert told.endswith(
        "Trained: 864 runs by source 08d5aec052b346b4.\n"
        "48 runs were not registered, and are left out.\n"  # those without decay
    )


STUDY = """
task = "mnist1d"
model = "mlp,width=8"
epochs = 1
batch = 64
data = 256
validation = 128
lr = "2^-9..2^-3"
seed = 0
[[grid]]
algorithm = "adamw"
weight_decay = "2^-12..2^-4"
[[grid]]
algorithm = "adam"
l2 = "2^-12..2^-4"
"""


@pytest.mark.slow
def test_sweep_register_sweep_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, folder = tmp_path / "study.toml", tmp_path / "folder"
    study.write_text(STUDY)
    assert main(["register", str(folder)]) == 2
    capsys.readouterr()
    sweep = ["sweep", str(study), "--out", str(folder), "--quiet", "--on", "here"]
    assert main([*sweep, "--device", "cpu"]) == 0
    with next((folder / "log").glob("*.jsonl")).open("ab") as log:
        log.write(b'{"result": torn by a kill')
    asked = ["register", str(folder), "--seeds", "3", "--carry", "2", "--at-edge"]
    assert main(asked) == 0
    assert "Adam: α = " in capsys.readouterr().out
    before = (folder / "registered.toml").read_bytes()
    assert main(asked) == 2
    assert "stays as it is" in capsys.readouterr().err
    assert (folder / "registered.toml").read_bytes() == before
    assert main(["judge", str(folder)]) == 2
    assert "must hold the registered runs" in capsys.readouterr().err
    second = ["sweep", str(folder / "judge.toml"), "--out", str(folder / "judging"), "--quiet"]
    assert main([*second, "--on", "here", "--device", "cpu"]) == 0
    capsys.readouterr()
    assert main(["judge", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "What judged is what was registered" in told
    assert main(["judge", str(folder), "--json"]) == 0
    [pair] = json.loads(capsys.readouterr().out)["compared"]
    assert pair["verdict"] in told
    assert pair["verdict"].startswith("withdrawn") == ("withdrawn" in told)
    errors = {
        name: [
            error_of(run)
            for run in Store(folder / "judging").runs()
            if run.config.algorithm == name and run.config.seed < 2000
        ]
        for name in ("adam", "adamw")
    }
    for name, own in errors.items():
        assert len(own) == 3
        assert f"{100 * np.mean(own):.2f}" in told, name


@pytest.mark.parametrize("more", [0, 1])
def test_grids_of_unequal_size_are_named_where_they_choose_and_where_they_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: int
) -> None:
    """One setting more is one more chance, too."""
    first = RATES[0], DECAYS[0]
    adamw = [
        run for run in runs_of(seeds=2) if more or (run.config.lr, run.config.weight_decay) != first
    ]
    adam = [
        run for run in runs_of(seeds=2, algorithm="adam") if (run.config.lr, run.config.l2) != first
    ]
    stored([*adamw, *adam], tmp_path / "own")
    told = said_by(capsys, "register", tmp_path / "own", "--seeds", "3", "--carry", "0")
    stored(fresh(read(tmp_path / "own")), tmp_path / "own" / "judging")
    for text in (told, said_by(capsys, "judge", tmp_path / "own")):
        assert ("were searched over unequal numbers of settings" in text) == bool(more)
        assert not more or ("Adam 53" in text and "AdamW 54" in text)


@pytest.mark.parametrize("name", ["judges", "carriers"])
@pytest.mark.parametrize("stated", ["5", "['a']", "[1.5]", "[[1]]"])
def test_seeds_that_are_no_seeds_are_named(folder: Path, name: str, stated: str) -> None:
    main(["register", str(folder), "--seeds", "3", "--carry", "0"])
    path = folder / FILE
    text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {stated}", path.read_text("utf-8"))
    path.write_text(text, "utf-8")
    told = f'`{name}` must be seeds such as "1000..1023", got {stated}'
    with pytest.raises(ValueError, match=re.escape(told)):
        read(folder)


def test_an_open_comparison_says_how_many_seeds_would_decide_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["register", str(folder), "--seeds", "6", "--carry", "0"])
    draw = np.random.default_rng(0)
    noisy = [
        ended(cell, test_error=0.2 * math.exp(0.3 * draw.normal())) for cell in read(folder).cells()
    ]
    second = stored(noisy, folder / "judging")  # one second per run
    said = said_by(capsys, "judge", folder)
    [told] = re.findall(r"about (\d+) seeds would decide it \((\d+) runs, ([\d.]+) minutes", said)
    seeds, runs, minutes = map(float, told)
    assert runs == 2 * seeds
    assert minutes == pytest.approx(runs / 60, abs=0.5)
    [pair] = json.loads(said_by(capsys, "judge", folder, "--json"))["compared"]
    assert pair["to_decide"] == {"part": "", "interval": 0.95, "seeds": seeds, "runs": runs}
    assert not pair["better"]
    shutil.rmtree(second)
    stored(fresh(read(folder), adam=1.5), second)
    [pair] = json.loads(said_by(capsys, "judge", folder, "--json"))["compared"]
    assert pair["verdict"] in ("better", "worse")
    assert pair["to_decide"] is None


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        (["x86_64"], "runs, [0-9.]+ minutes of one core"),
        (["NVIDIA H200"], "runs, [0-9.]+ minutes of one GPU"),
        (["NVIDIA H200", "x86_64"], "runs"),  # times of both cannot be added
    ],
)
def test_what_would_decide_takes_so_long_on_what_trained_the_seeds(
    folder: Path, capsys: pytest.CaptureFixture[str], devices: list[str], told: str
) -> None:
    main(["register", str(folder), "--seeds", "6", "--carry", "0"])
    made = read(folder)
    draw = np.random.default_rng(0)
    where = Environment(
        device="", torch="2", python="3", version="1", commit="unknown", source=str(made.source)
    )
    noisy = [
        replace(
            ended(cell, test_error=0.2 * math.exp(0.3 * draw.normal())),
            environment=replace(where, device=devices[n % len(devices)]),
        )
        for n, cell in enumerate(made.cells())
    ]
    stored(noisy, folder / "judging")
    said = said_by(capsys, "judge", folder)
    assert re.search(rf"seeds would decide it \(\d+ {told}\)", said), said
