"""The paper's figures in two stages: grids choose, fresh seeds judge, and edges are extended."""

import math
import time
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.landscapes import ended
from tests.test_cli_reproduce import TASK
from tests.test_cli_reproduce import TINY as OF_ONE_STAGE
from weightdecay.cli import main, stages, sweep_view
from weightdecay.records import Run, RunConfig, packed
from weightdecay.records.codec import Cost
from weightdecay.results import Judgement, judged
from weightdecay.results.estimate import within
from weightdecay.results.judging import contrasted
from weightdecay.studies import STUDIES, Panel, registration_file, scale, scales
from weightdecay.studies.costs import cost_of
from weightdecay.studies.extension import together
from weightdecay.studies.findings import find, of_second_stage
from weightdecay.studies.formats import because, rule
from weightdecay.studies.reasons import Comparison
from weightdecay.studies.registration import Registration, register
from weightdecay.studies.registration_file import read, write
from weightdecay.studies.study import Evidence
from weightdecay.studies.verdicts import (
    HELD,
    NOT_DECIDED,
    NOT_HELD,
    Verdict,
    all_of,
    better,
    compared,
)
from weightdecay.sweeps import Store, sweep_events

AT = replace(scale("mnist1d", "small"), seeds="0..1", judges=8, carriers=4)
FIGURE = STUDIES["figure-2"]
#: Best settings of each method, as powers of two, and the error there.
BEST = {
    "sgd": (-4, -6, 0.11),
    "sgdw": (-4, -7, 0.11),
    "adam": (-7, -7, 0.12),
    "adamw": (-7, -7, 0.1),
}


def error_of(cell: RunConfig) -> float:
    x, z, low = BEST[cell.algorithm.partition(",")[0]]
    decay = next(d for d in (cell.l2, cell.weight_decay) if d is not None)
    away = 0.2 * (math.log2(cell.lr) - x) ** 2
    away += 1.0 if decay == 0 else 0.2 * (math.log2(decay) - z) ** 2
    return low * (1 + 0.2 * away)


def trained(cells: Sequence[RunConfig], noise: float = 0.01) -> list[Run]:
    draw = np.random.default_rng(0)
    found = []
    for cell in cells:
        value = error_of(cell) * math.exp(noise * draw.normal())
        found.append(ended(cell, test_error=value, validation_error=value))
    return found


def both_stages(noise: float = 0.01) -> Evidence:
    first = FIGURE.evidence(AT, trained(FIGURE.cells(AT)))
    made = register(
        FIGURE.entrants(first),
        first.runs,
        date="2026-11-16",
        seeds=AT.judges,
        carry=AT.carriers,
        carried=FIGURE.carried,
        compare=FIGURE.compared,
    )
    return FIGURE.judged(first, made, trained(made.cells(), noise))


def outcomes(seen: Evidence) -> dict[str, Verdict]:
    return {verdict.claim: verdict for verdict in FIGURE.verdicts(seen)}


def test_fresh_seeds_judge_claims_about_best_errors() -> None:
    seen = both_stages()
    assert seen.second is not None
    assert not seen.second.changed
    told = outcomes(seen)
    assert told["AdamW's best is better than Adam's"].outcome == HELD
    assert told["AdamW's best rivals SGD's and SGDW's"].outcome == HELD
    assert told["Adam gains nothing from L2 over λ = 0"].outcome == NOT_HELD
    words = because(told["AdamW's best is better than Adam's"])
    assert "minus Adam's: −1" in words  # 0.1 is 17 % below 0.12
    assert words.endswith("8 seeds")


@pytest.mark.parametrize(("missing", "fresh"), [(0, range(1000, 1008)), (1, range(2))])
def test_curves_are_of_the_second_stage_only_once_all_its_seeds_are_trained(
    missing: int, fresh: range
) -> None:
    seen = both_stages()
    assert seen.second is not None
    runs = {name: own[missing:] for name, own in seen.second.runs.items()}
    half = replace(seen, second=replace(seen.second, runs=runs))
    assert sorted(half.fresh("adamw")) == [*fresh]


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "certain"), [(0.0001, True), (0.1, False)])
def test_how_often_other_seeds_would_choose_otherwise_is_told(noise: float, certain: bool) -> None:
    first = trained(FIGURE.cells(AT), noise)
    seen = FIGURE.evidence(AT, first)
    made = register(
        FIGURE.entrants(seen),
        seen.runs,
        date="2026-11-16",
        seeds=2,
        carry=0,
        compare=FIGURE.compared,
        at_edge=True,
    )
    found, _ = find(FIGURE, AT, first, registration=made, second=trained(made.cells()))
    told = " ".join(of_second_stage(found))
    assert "the difference at settings chosen in this way" in told
    assert ("sgd 0 %; " in told) == certain
    assert ("adamw 0 %; " in told) == certain


def test_a_page_says_if_its_registration_was_changed_after_it_was_written(tmp_path: Path) -> None:
    made = both_stages().registration
    assert made is not None
    write(made, tmp_path)

    def told() -> str:
        first, second = trained(FIGURE.cells(AT)), trained(made.cells())
        found, _ = find(FIGURE, AT, first, registration=read(tmp_path), second=second)
        return " ".join(of_second_stage(found))

    assert "What judged is what was registered" in told()
    path = tmp_path / registration_file.FILE
    path.write_text(path.read_text("utf-8").replace("below ln 1.03", "below ln 1.3"), "utf-8")
    said = told()
    assert "registered.toml was changed after it was written" in said
    assert "What judged is what was registered" not in said
    states = 'The edited file states the rule `as_good` as: "… end is below ln 1.3".'
    assert f'{states} What judges is: "… end is below ln 1.03".' in said
    assert "It was:" not in said


def test_a_page_of_results_that_nothing_was_registered_for_says_so() -> None:
    exponents, schedule = STUDIES["exponents"], STUDIES["supplement-1"]
    runs = [ended(cell) for cell in exponents.cells(AT)[:20]]
    told = of_second_stage(find(exponents, AT, runs)[0])
    assert told == ["Nothing was registered for these results, and no fresh seeds judge them."]
    assert of_second_stage(find(schedule, AT, [])[0]) == [], "it has no results"


def test_grids_of_unequal_size_are_told_where_methods_are_compared() -> None:
    """That λ = 0 has fewer settings than other decays is meant to be so."""
    seen = both_stages()
    assert seen.registration is not None
    found, _ = find(FIGURE, AT, seen.runs, registration=seen.registration)
    assert "unequal" not in " ".join(of_second_stage(found))
    methods = dict(seen.registration.methods)
    methods["adamw"] = replace(methods["adamw"], settings=77)
    grown = replace(seen.registration, methods=methods)
    found, _ = find(FIGURE, AT, seen.runs, registration=grown)
    told = " ".join(of_second_stage(found))
    same = methods["adam"].settings
    assert f"unequal numbers of settings: AdamW 77; Adam {same}; SGD {same}; SGDW {same}." in told


def test_a_method_that_joined_a_figure_after_it_was_registered_is_named() -> None:
    """As RMSProp joined the conjecture."""
    seen = both_stages()
    made = seen.registration
    assert made is not None
    before = replace(
        made,
        methods={name: one for name, one in made.methods.items() if name != "adamw"},
        compared=tuple(pair for pair in made.compared if "adamw" not in pair),
    )
    found, _ = find(FIGURE, AT, seen.runs, registration=before)
    assert "adamw was not registered." in of_second_stage(found)


def test_seeds_of_the_first_stage_change_no_comparison() -> None:
    """Whatever the test errors of the grid are, the second stage alone decides."""
    seen = both_stages()
    assert seen.registration is not None
    worse = [
        replace(run, records=(replace(run.last, test_error=0.9 - error_of(run.config)),))
        if run.config.algorithm == "adamw"
        else run
        for run in seen.runs
    ]
    judges = trained(seen.registration.cells())
    again = FIGURE.judged(FIGURE.evidence(AT, worse), seen.registration, judges)
    claim = "AdamW's best is better than Adam's"
    assert outcomes(again)[claim] == outcomes(seen)[claim]


def test_an_open_comparison_says_what_it_could_have_seen() -> None:
    noisy = outcomes(both_stages(noise=0.4))["AdamW's best is better than Adam's"]
    assert noisy.outcome == NOT_DECIDED
    assert "% would have been seen, and one of 3 % by about" in because(noisy)
    assert "registered before" in rule(noisy)


def comparison(value: float, error: float, seeds: int = 10) -> Comparison:
    found = within(value, error**2, seeds - 1)
    return Comparison("this", Judgement(seeds, found, found, None))


def test_a_part_in_several_is_not_held_only_by_the_wider_interval() -> None:
    """t of nine degrees of freedom: 2.26 for one part, 3.11 for the wider interval of four."""
    sure, barely = comparison(-1.0, 0.01), comparison(0.026, 0.01)
    alone = compared("barely", barely)
    assert alone.outcome == NOT_HELD
    held = [compared(f"part {n}", sure) for n in range(3)]
    assert all_of("all", [alone]).outcome == NOT_HELD
    assert all_of("all", [*held, alone]).outcome == NOT_DECIDED
    clearly = compared("clearly", comparison(0.033, 0.01))
    assert all_of("all", [*held, clearly]).outcome == NOT_HELD
    assert all_of("all", held).outcome == HELD
    less = better("less", within(0.026, 0.01**2, 9), "this")
    assert less.outcome == NOT_HELD
    assert all_of("all", [*held, less]).outcome == NOT_DECIDED


AXES: dict[str, Any] = {
    "task": "mnist1d",
    "model": "mlp",
    "epochs": 2,
    "batch": 64,
    "algorithm": "adamw",
    "lr": "2^-8..2^-5",
    "weight_decay": [0, "2^-8..2^-5"],
    "seed": 0,
}


def panel_at(lr: int, decay: int, *, rounds: int) -> Panel:
    """Grow a panel whose best lies at these powers of two, each round with what it asks for."""
    panel = Panel("adamw", "AdamW", AXES)
    cells = {*panel.cells}
    for _ in range(rounds):
        there = {
            cell.identity: ended(
                cell,
                validation_error=0.1
                + 0.01 * (math.log2(cell.lr) - lr) ** 2
                + 0.01 * (math.log2(cell.weight_decay or 1) - decay) ** 2,
            )
            for cell in cells
        }
        cells |= {*together([panel], there)[0].cells}
    return together([panel], there)[0]


def test_a_grid_grows_where_its_best_lies_at_an_edge_and_no_farther_than_it_must() -> None:
    assert {cell.lr for cell in panel_at(-7, -6, rounds=1).cells} == {2.0**k for k in range(-8, -4)}
    grown = {cell.lr for cell in panel_at(-10, -6, rounds=4).cells}
    assert grown == {2.0**k for k in range(-12, -4)}
    decays = {cell.weight_decay for cell in panel_at(-7, -4, rounds=4).cells}
    assert decays == {0, *(2.0**k for k in range(-8, -2))}


def test_a_grid_grows_three_times_at_most() -> None:
    rates = {cell.lr for cell in panel_at(-40, -6, rounds=9).cells}
    assert min(rates) == 2.0**-14


def test_a_normalized_decay_grows_no_farther_than_a_decay_of_1() -> None:
    """With cycles of 16 updates λ = λ_norm / 4, and a λ_norm of 4 would remove whole weights."""
    axes = {name: axis for name, axis in AXES.items() if name != "weight_decay"}
    panel = Panel("adamw", "AdamW", {**axes, "normalized_decay": "2^-2..2^1"})

    def highest(cycle: int) -> float:
        runs = {
            cell.identity: ended(
                cell,
                validation_error=0.2
                + 0.01 * (math.log2(cell.lr) + 7) ** 2
                - 0.01 * (cell.normalized_decay or 0),
                cycle_updates=cycle,
            )
            for cell in panel.cells
        }
        return max(cell.normalized_decay or 0 for cell in together([panel], runs)[0].cells)

    assert highest(cycle=16) == 2
    assert highest(cycle=17) == 4
    assert highest(cycle=65) == 8


def test_a_contrast_is_one_comparison_over_another() -> None:
    draw = np.random.default_rng(0)
    config = ended_config()

    def side(chance: float) -> list[Run]:
        rows = draw.random((6, 300)) < chance
        return [
            ended(
                replace(config, seed=seed),
                test_error=float(row.mean()),
                missed=packed(row.tolist()),
            )
            for seed, row in enumerate(rows)
        ]

    sides = [side(chance) for chance in (0.2, 0.4, 0.3, 0.3)]
    one, other = judged(*sides[:2]), judged(*sides[2:])
    both = contrasted((sides[0], sides[1]), (sides[2], sides[3]))
    assert both.ratio.value == pytest.approx(one.ratio.value - other.ratio.value)
    assert both.points.value == pytest.approx(one.points.value - other.points.value)
    assert both.of_test_set is not None
    assert both.ratio.high - both.ratio.low > one.ratio.high - one.ratio.low


def ended_config() -> RunConfig:
    return RunConfig(
        task="mnist1d", model="mlp", algorithm="adamw", lr=1, weight_decay=0, epochs=1, batch=8
    )


TINY = replace(
    OF_ONE_STAGE,
    lrs=dict.fromkeys(scales.FAMILIES, "2^-8..2^-5"),
    l2={family: [0, "2^-9..2^-6"] for family in scales.FAMILIES},
    decays={family: [0, "2^-9..2^-6"] for family in scales.FAMILIES},
    judges=3,
    carriers=2,
)


@pytest.mark.slow
@pytest.mark.cpu("files are equal to the byte on a CPU")
def test_reproduce_trains_registers_judges_and_resumes_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(scales._SCALES, (TASK, "small"), TINY)
    command = ["reproduce", "figure-2", "--task", TASK, "--on", "here", "--device", "cpu"]
    folder = Path("reproduction") / TINY.folder
    swept: list[int] = []
    whole = sweep_events

    def stopping(*arguments: Any, **options: Any) -> Any:
        swept.append(len(arguments[0]))
        if len(swept) == stop_at:
            raise KeyboardInterrupt
        return whole(*arguments, **options)

    engines: list[Any] = []

    def engine_of(options: Namespace) -> Any:
        engines.append(sweep_view.engine_of(options))
        return engines[-1]

    monkeypatch.setattr(sweep_view, "sweep_events", stopping)
    monkeypatch.setattr(stages, "engine_of", engine_of)
    stop_at = 0
    assert main(command) == 0
    told = capsys.readouterr().out
    sweeps = len(swept)
    assert sweeps >= 2
    assert len(engines) == 1  # the workers of the first stage train the second
    assert "What judged is what was registered" in told
    assert "Of resampled seeds, so many choose another learning rate, or a decay" in told
    assert "3 seeds" in told
    registered = (folder / "figure-2" / "registered.toml").read_bytes()
    verdicts = (folder / "figure-2" / "verdicts.json").read_bytes()
    assert {run.config.seed for run in Store(folder).runs()} == {0, 1}
    seeds = {run.config.seed for run in Store(folder / "judging").runs()}
    assert seeds <= {1000, 1001, 1002, 2000, 2001}
    for at in range(1, sweeps + 1):
        out = ["--out", f"again-{at}"]
        swept.clear()
        stop_at = at
        assert main([*command, *out]) == 130
        stop_at = 0
        assert main([*command, *out]) == 0
        again = Path(f"again-{at}") / TINY.folder / "figure-2"
        assert (again / "registered.toml").read_bytes() == registered
        assert (again / "verdicts.json").read_bytes() == verdicts


def test_a_first_stage_with_missing_cells_is_not_registered(tmp_path: Path) -> None:
    """What some of the cells chose would stay registered."""
    runs = trained(FIGURE.cells(AT))
    assert stages._registered([FIGURE], AT, runs[1:], tmp_path) == {}
    assert [*stages._registered([FIGURE], AT, runs, tmp_path)] == ["figure-2"]
    assert (tmp_path / "figure-2" / "registered.toml").exists()


@pytest.mark.slow
def test_the_cost_of_both_stages_is_told_per_decided_claim(tmp_path: Path) -> None:
    first = trained(FIGURE.cells(AT))
    registered = stages._registered([FIGURE], AT, first, tmp_path)[FIGURE.name]
    second = trained(registered.cells())
    costs: dict[str, float] = {}
    for folder, runs, seconds in ((tmp_path, first, 30.0), (tmp_path / "judging", second, 60.0)):
        with Store(folder).writing(1) as writer:
            writer.results([(run, Cost(run.config.identity, seconds, 1, 1)) for run in runs])
        costs |= Store(folder).seconds()
    found, _ = find(FIGURE, AT, first, registration=registered, second=second, costs=costs)
    decided = [one for one in found.verdicts if one.outcome != NOT_DECIDED]
    count, minutes = len(first) + len(second), len(first) / 2 + len(second)
    assert 1 < len(decided) < len(found.verdicts)
    assert cost_of(found) == (
        f"Cost: {count:,} runs and {minutes:.1f} minutes of one core; "
        f"{len(decided)} of {len(found.verdicts)} claims are decided, "
        f"{count / len(decided):.0f} runs and {minutes / len(decided):.1f} minutes of one core "
        "each."
    )


def test_of_two_processes_the_first_registers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = trained(FIGURE.cells(AT))
    own = tmp_path / FIGURE.name
    own.mkdir()

    def slower(*arguments: Any, **options: Any) -> Registration:
        chosen = register(*arguments, **options)
        write(replace(chosen, date="2026-01-01"), own)  # another process, in the meantime
        return chosen

    monkeypatch.setattr(stages, "register", slower)
    found = stages._registered([FIGURE], AT, runs, tmp_path)
    assert found[FIGURE.name].date == read(own).date == "2026-01-01"


def test_two_registrations_at_once_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = both_stages().registration
    assert made is not None
    both = [replace(made, date=date) for date in ("2026-01-01", "2026-01-02")]
    check = registration_file.check_new

    def slowly(folder: Path) -> None:
        check(folder)
        time.sleep(0.3)

    monkeypatch.setattr(registration_file, "check_new", slowly)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(write, one, tmp_path) for one in both]
    ends = [one.exception() for one in running]
    lost = [one for one, end in zip(both, ends, strict=True) if isinstance(end, FileExistsError)]
    assert len(lost) == 1
    assert read(tmp_path).date != lost[0].date


class Remembered:
    """A store in memory, per folder."""

    of: ClassVar[dict[Path, list[Run]]] = {}

    def __init__(self, folder: Path) -> None:
        self._runs = self.of.setdefault(folder, [])

    def runs(self) -> list[Run]:
        return list(self._runs)

    def repeats(self) -> list[Run]:
        return []

    def seconds(self) -> dict[str, float]:
        return {}


@pytest.mark.slow
def test_the_number_of_planned_runs_never_falls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adam's best lies beyond its grid, which grows twice; an interrupt comes at any time."""
    monkeypatch.setitem(BEST, "adam", (-14, -7, 0.12))
    monkeypatch.setattr(stages, "Store", Remembered)
    planned: list[int] = []
    stopped = 0

    def swept(
        cells: Sequence[RunConfig], options: Namespace, engine: object, found: object
    ) -> bool:
        del engine, found
        first = options.folder == tmp_path
        planned.extend([len(cells)] * first)
        if first and len(planned) == stopped:
            return False
        there = {run.config for run in Remembered(options.folder).runs()}
        Remembered.of[options.folder] += trained([cell for cell in cells if cell not in there])
        return True

    monkeypatch.setattr(stages, "_swept", swept)
    here = {"on": "here", "device": "cpu", "workers": None, "timeout": None, "address": None}
    options = Namespace(folder=tmp_path, quiet=True, **here)
    for at in (0, 2, 3):
        stopped = at
        planned.clear()
        Remembered.of.clear()
        for path in tmp_path.glob("*/registered.toml"):
            path.unlink()
        while stages.train([FIGURE], AT, options) is None:
            pass
        ended = len(planned)
        assert planned == sorted(planned)
        assert planned[-1] > planned[0] == len(FIGURE.cells(AT))
        assert stages.train([FIGURE], AT, options) is not None
        assert planned[ended:] == [planned[ended - 1]]


def test_a_contrast_is_withdrawn_if_a_setting_is_at_an_edge() -> None:
    """Adam's decays all lie at the lowest: it might do better beyond."""
    study = STUDIES["figure-1"]

    def error(cell: RunConfig) -> float:
        if cell.algorithm == "adam":
            better = {"constant": 0.0, "cosine": 0.04}.get(cell.schedule, 0.02)
            return (
                0.24
                - better
                - 0.01 * math.log2(1 + 4096 * (cell.l2 or 0))
                + 0.01 * abs(math.log2(cell.lr) + 7)
            )
        gain = {"constant": 0.18, "cosine": 0.1}.get(cell.schedule, 0.12)
        return (
            gain * (1 + 0.05 * ((math.log2(cell.lr) + 7) ** 2))
            + 0.01 * (math.log2(cell.weight_decay or 2**-12) + 7) ** 2
        )

    def trained_by(cells: Sequence[RunConfig]) -> list[Run]:
        draw = np.random.default_rng(0)
        values = [error(cell) * math.exp(0.005 * draw.normal()) for cell in cells]
        return [
            ended(cell, test_error=value, validation_error=value)
            for cell, value in zip(cells, values, strict=True)
        ]

    first = study.evidence(AT, trained_by(study.cells(AT)))
    made = register(
        study.entrants(first),
        first.runs,
        date="2026-11-16",
        seeds=8,
        carry=0,
        compare=study.pairs(AT),
        at_edge=True,
    )
    assert made.methods["adam, cosine"].choice.edges == ("highest decay",)
    seen = study.judged(first, made, trained_by(made.cells()))
    told = {verdict.claim: verdict for verdict in study.verdicts(seen)}
    gains = told["Decoupled decay gains more, the better the schedule"]
    assert gains.outcome == NOT_DECIDED
    assert "at the edge of its grid" in because(gains)


def test_every_claim_of_the_conjecture_has_a_second_stage_at_a_scale_that_has_one() -> None:
    at = scale("cifar10", "small")
    assert at.judges
    study = STUDIES["conjecture"]
    assert len(study.pairs(at)) == len(study.claims(at)) == 3


def test_what_a_scale_does_not_have_is_neither_compared_nor_carried() -> None:
    """A scale may lack learning rates for an optimizer that the conjecture names."""
    study, whole = STUDIES["conjecture"], scale("mnist1d", "small")
    assert "rmspropw" in study.carried
    lrs = {family: axis for family, axis in whole.lrs.items() if family != "rmsprop"}
    at = replace(whole, lrs=lrs)
    seen = study.evidence(at, [ended(cell) for cell in study.cells(at)])
    assert set(study.entrants(seen)) == {"amsgrad", "amsgradw", "adagrad", "adagradw"}


@pytest.mark.parametrize(
    ("repeated", "figure"), [("supplement-4", "figure-3"), ("supplement-6", "figure-4")]
)
def test_a_figure_repeated_on_a_second_task_has_its_second_stage_there(
    repeated: str, figure: str
) -> None:
    study, at = STUDIES[repeated], scale("mnist1d", "small")
    seen = study.evidence(at, [ended(cell) for cell in study.cells(at)])
    own = STUDIES[figure].evidence(scale("text", "small"), seen.runs)
    assert seen.scale.task == "text"
    assert study.entrants(seen).keys() == STUDIES[figure].entrants(own).keys() != set()
