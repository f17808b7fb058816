"""Lives of tuners in which every run is really trained: what simulated lives say must hold there.

    python -m benchmarks.real_tuners results/tuning/mnist1d.parquet --lives 16 --out rows.jsonl
    python -m benchmarks.real_tuners --report rows.jsonl

The task, the lattice of settings and the ranges of each life are those of a table of
`benchmarks.tuners`, and so are the tuners. But no run is drawn from the table: each is trained,
with a seed that the table does not have. Recommended settings are judged by long runs with other
seeds, which all tuners share.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tuners import Life, Table, _interval, optuna_life, our_life, start
from weightdecay.records import RunConfig, read
from weightdecay.runs import train

#: The tuners, and the compute at which each is asked for its recommendation, in long runs. The
#: rivals are those that were best in simulated lives on mnist1d and text, at these spends.
TUNERS: dict[str, tuple[Life, tuple[float, ...]]] = {
    "weightdecay": (our_life(), (0.5, 1.0, 2.0)),
    "start": (start, (1.0,)),
    "cmaes 1/4": (optuna_life("cmaes", 4), (1.0,)),
    "cmaes 1/2": (optuna_life("cmaes", 2), (2.0,)),
    "cmaes-start": (optuna_life("cmaes", 1, from_start=True), (2.0,)),
    "tpe-torch 1/4": (optuna_life("tpe-torch", 4), (2.0, 4.0)),
    "cmaes-start 1/2": (optuna_life("cmaes", 2, from_start=True), (1.0, 2.0)),
}
#: What is compared: ours with the same compute, and with half of it.
PAIRS = (
    *((1.0, "cmaes 1/4", 1.0), (2.0, "cmaes 1/2", 2.0), (2.0, "cmaes-start", 2.0)),
    *((2.0, "tpe-torch 1/4", 2.0), (1.0, "cmaes 1/2", 2.0), (1.0, "cmaes-start", 2.0)),
    *((1.0, "tpe-torch 1/4", 2.0), (2.0, "tpe-torch 1/4", 4.0), (1.0, "start", 1.0)),
    *((1.0, "cmaes-start 1/2", 1.0), (1.0, "cmaes-start 1/2", 2.0)),
    *((2.0, "cmaes-start 1/2", 2.0), (2.0, "start", 1.0)),
)
_JUDGES = range(5000, 5008)
_FIRST = 10_000  # seed of a life's runs; each life has a thousand


class Trained:
    """Validation errors by seed, budget, learning rate and decay, trained when they are read.

    The seed that a simulated life draws is not used: every run has a new one.
    """

    def __init__(self, table: Table, base: RunConfig, seed: int) -> None:
        self._table, self._base, self._seed = table, base, seed

    def __len__(self) -> int:
        return len(self._table.tested)

    def __getitem__(self, at: tuple[int, int, int, int]) -> float:
        _, budget, row, column = at
        self._seed += 1
        config = _config(self._base, self._table, row, column, self._table.epochs[budget])
        [run] = train([replace(config, seed=self._seed)], device="cpu", progress=False)
        error = None if run.diverged else run.last.validation_error
        return 1.0 if error is None else error


def _config(base: RunConfig, table: Table, row: int, column: int, epochs: int) -> RunConfig:
    lr, decay = float(table.lrs[row]), float(table.decays[column])
    return replace(base, lr=lr, normalized_decay=decay, epochs=epochs, evaluate_every=0)


def lives(path: Path, numbers: Sequence[int], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield, for each life, what every tuner recommended, and the errors of long runs there."""
    table, base = Table.of(path), next(iter(read(path))).config
    judged: dict[tuple[float, float], list[float]] = {}
    for number in numbers:
        own = table.within(np.random.default_rng([number, 0]))
        found: dict[tuple[str, float], tuple[int, int]] = {}
        for place, (name, (life, spends)) in enumerate(TUNERS.items()):
            if name not in names:
                continue
            seed = _FIRST + 1000 * number + 100 * place
            live: Any = replace(
                own,
                chosen=Trained(own, base, seed),  # type: ignore[arg-type]
                steps=(),
                curves=own.curves[..., :0],
            )
            for spent, setting in life(live, number, max(spends)):
                found |= {(name, spend): setting for spend in spends if spent <= spend + 1e-9}
        new = [
            _config(base, own, row, column, own.epochs[-1])
            for row, column in dict.fromkeys(found.values())
        ]
        new = [config for config in new if (config.lr, config.normalized_decay) not in judged]
        runs = [replace(config, seed=seed) for config in new for seed in _JUDGES]
        for run in train(runs, device="cpu", progress=False) if runs else ():
            key = run.config.lr, run.config.normalized_decay or 0.0
            error = None if run.diverged else run.last.test_error
            judged.setdefault(key, []).append(1.0 if error is None else error)
        for (name, spend), setting in found.items():
            lr, decay = float(own.lrs[setting[0]]), float(own.decays[setting[1]])
            yield {
                "table": path.stem,
                "life": number,
                "tuner": name,
                "spend": spend,
                "lr": lr,
                "normalized_decay": decay,
                "error": round(float(np.mean(judged[lr, decay])), 5),
            }


def reported(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a report: errors in per cent, and differences, with 95 % intervals."""
    for table in dict.fromkeys(row["table"] for row in rows):
        here = [row for row in rows if row["table"] == table]
        errors: dict[tuple[str, float], dict[int, float]] = {}
        for row in here:
            errors.setdefault((row["tuner"], row["spend"]), {})[row["life"]] = row["error"]
        count = len({row["life"] for row in here})
        yield f"{table}, {count} lives: test error in % of long runs at the recommended setting"
        for (name, spend), by_life in errors.items():
            low, high = _interval(np.array([*by_life.values()]))
            found = f"{50 * (low + high):.2f} ±{50 * (high - low):.2f}"
            yield f"{name:<14} {spend:>4g} long runs: {found}"
        for spend, other, compute in PAIRS:
            if (other, compute) not in errors:
                continue
            ours, theirs = errors["weightdecay", spend], errors[other, compute]
            apart = np.array([ours[life] - theirs[life] for life in ours if life in theirs])
            low, high = _interval(apart)
            yield (
                f"ours with {spend:g} less {other} with {compute:g}: "
                f"{100 * apart.mean():+.2f} points ({100 * low:+.2f} to {100 * high:+.2f})"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, or report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("table", nargs="?", type=Path)
    parser.add_argument("--lives", type=int, default=16)
    parser.add_argument("--first", type=int, default=0, help="the first life's number")
    parser.add_argument("--only", nargs="+", choices=[*TUNERS], default=[*TUNERS])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    if given.report:
        lines = [line for path in given.report for line in path.read_text("utf-8").splitlines()]
        print("\n".join(reported([json.loads(line) for line in lines])))
        return
    numbers = range(given.first, given.first + given.lives)
    for row in lives(given.table, numbers, given.only):
        print(json.dumps(row), flush=True)
        if given.out:
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
