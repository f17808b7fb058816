"""Judge Figure 2's chosen settings by the seeds that were registered, and what carrying costs.

    python results/cifar10-small/judge.py

reads `store`, `judging` and `registered.toml`, and writes `judged.md`. Estimates and rules are
those that were registered; nothing is chosen here.
"""

import math
import sys
import tomllib
from collections import defaultdict

from register import HERE, METHODS, SLOPES, carried, chosen, first_stage

from weightdecay.records import Run
from weightdecay.results.estimate import Estimate
from weightdecay.results.judging import CHANCE, judged, mean_of, transfer_regret
from weightdecay.sweeps import Store

JUDGES, CARRIERS = range(1000, 1024), range(2000, 2008)


def percent(estimate: Estimate, *, ratio: bool = False) -> str:
    """Return an estimate in points, or as what a ratio of errors is above 1."""
    ends = estimate.value, estimate.low, estimate.high
    value, low, high = (math.expm1(end) if ratio else end for end in ends)
    return f"{100 * value:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]".replace("-", "−")


def main() -> None:
    """Write the page of what was judged."""
    registered = tomllib.loads((HERE / "registered.toml").read_text(encoding="utf-8"))
    of = first_stage(Store(HERE / "store").runs())
    at: dict[tuple[str, float, float], list[Run]] = defaultdict(list)
    for run in Store(HERE / "judging").runs():
        name = run.config.algorithm
        at[name, run.config.lr, getattr(run.config, METHODS[name])].append(run)
    for name, seen in of.items():
        said = registered["chosen"][name]
        best = chosen(seen)
        assert (said["lr"], said[METHODS[name]]) == (best.lr, best.decay), "not as registered"
    lines = ["# Figure 2 on CIFAR-10, judged\n"]
    judges = {
        name: [
            run
            for run in at[name, chosen(seen).lr, chosen(seen).decay]
            if run.config.seed in JUDGES
        ]
        for name, seen in of.items()
    }
    lines += ["| method | α | λ | seeds | test error (%) |", "| --- | --- | --- | --- | --- |"]
    for name, runs in judges.items():
        best = chosen(of[name])
        errors = [100 * run.records[-1].test_error for run in runs]
        mean = sum(errors) / len(errors)
        spread = math.sqrt(sum((error - mean) ** 2 for error in errors) / (len(errors) - 1))
        lines.append(
            f"| {name} | {best.lr:g} | {best.decay:g} | {len(runs)} | {mean:.2f} ± {spread:.2f} |"
        )
    lines += [
        "",
        "| compared | relative (%) | points | better | as good |",
        "| --- | --- | --- | --- | --- |",
    ]
    for pair in registered["judging"]["compared"]:
        one, other = pair.split(" - ")
        seen = judged(judges[one], judges[other])
        lines.append(
            f"| {pair} | {percent(seen.ratio, ratio=True)} | {percent(seen.points)} "
            f"| {'yes' if seen.better else 'no'} | {'yes' if seen.as_good else 'no'} |"
        )
    lines += [
        "",
        "| method | regret (points) of s = " + " | ".join(f"{s:g}" for s in SLOPES) + " |",
        "| --- |" + " --- |" * len(SLOPES),
    ]
    for name, columns in of.items():
        errors = {
            (lr, decay): {
                run.config.seed: CHANCE if run.records[-1].diverged else run.records[-1].test_error
                for run in runs
                if run.config.seed in CARRIERS
            }
            for (algorithm, lr, decay), runs in at.items()
            if algorithm == name
        }
        best = {column.lr: column.decay for column in columns.values()}
        row = []
        for s in SLOPES:
            ones = [one for one in carried(columns) if one.s == s]
            if all(errors.get((one.used_at, one.decay)) for one in ones):
                row.append(percent(mean_of(transfer_regret(errors, best, ones))))
            else:
                row.append("to be trained")
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    text = "\n".join(lines) + "\n"
    (HERE / "judged.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
