"""Writes the tables and plots of the benchmarks from their committed rows.

    python -m benchmarks.report            # rewrites the tables of the README, and the plots

A table stands between its marks, <!-- name --> and <!-- /name -->. The plots need matplotlib:
pip install -e '.[figures]'
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE / "README.md"
CONTENDERS = (
    "weightdecay",
    "torch fused",
    "torch compiled",
    "torch foreach",
    "optimi",
    "flashoptim",
)
TITLES = {"adamw": "AdamW", "sgdw": "SGDW (torch: SGD)"}


def rows(name: str) -> list[dict[str, Any]]:
    """Return the measurements of a file, without its first line."""
    lines = (HERE / "results" / name).read_text(encoding="utf-8").splitlines()
    return [row for line in lines if {"contender", "way"} & (row := json.loads(line)).keys()]


def table(found: list[dict[str, Any]]) -> str:
    """Return one file's measurements as a Markdown table."""
    names = [name for name in CONTENDERS if any(row["contender"] == name for row in found)]
    floor = any(row["floor_ms"] for row in found)
    head = ["", "parameters", *(["floor"] if floor else []), *names]
    lines = [head, ["---"] * len(head)]
    for algorithm, title in TITLES.items():
        for size in dict.fromkeys(row["set"] for row in found):
            of = {
                row["contender"]: row
                for row in found
                if (row["set"], row["algorithm"]) == (size, algorithm)
            }
            least = [f"{of['weightdecay']['floor_ms']:.3g}"] if floor else []
            lines.append([title, size, *least, *(_cell(of.get(name)) for name in names)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def lanes_table(found: list[dict[str, Any]]) -> str:
    """Return speeds of lanes as a Markdown table: one row per model, one column per count."""
    counts = sorted({row["lanes"] for row in found if row["way"] == "lanes"})
    head = ["", "plain loop", *(f"{n} lane{'s' * (n > 1)}" for n in counts), "ratio", "MB per lane"]
    lines = [head, ["---"] * len(head)]
    for model in dict.fromkeys(row["model"] for row in found):
        of = {(row["way"], row["lanes"]): row for row in found if row["model"] == model}
        made = [of.get(("lanes", count)) for count in counts]
        most = max(filter(None, made), key=lambda row: row["speed"])
        cells = [of["plain loop", 1], *made]
        speeds = [f"{row['speed']:,.0f}" if row else "–" for row in cells]
        memory = f"{most['memory_a_lane_mb']:,.0f}" if "memory_a_lane_mb" in most else "–"
        lines.append([model, *speeds, f"{most['ratio']:.1f}", memory])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def sweeps_table(found: list[dict[str, Any]], unit: str) -> str:
    """Return configurations per hour as a Markdown table, one row per way to train them."""
    per_core = {row["way"]: row["an_hour"] / row["cores"] for row in found}
    rivals = [name for name in ("plain loop", "Ray Tune") if name in per_core]
    head = ["", "cells", "seconds", f"{unit}s", "per hour", f"per hour and {unit}"]
    head += [f"× {name}" for name in rivals]
    lines = [head, ["---"] * len(head)]
    for row in found:
        speed = per_core[row["way"]]
        line = [row["way"], str(row["cells"]), f"{row['seconds']:.0f}", str(row["cores"])]
        line += [f"{row['an_hour']:,.0f}", f"{speed:,.0f}"]
        lines.append([*line, *(f"{speed / per_core[name]:.1f}" for name in rivals)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def kills(log: str) -> str:
    """Return a summary of a log of kills and other faults."""
    sweeps = re.findall(
        r"(\d+) kills \([^)]*\)(?: and +(\d+) other faults \([^)]*\))? in .*? s: (.*)", log
    )
    total = sum(int(count) for count, _, _ in sweeps)
    others = sum(int(count or 0) for _, count, _ in sweeps)
    same = sum(result == "the same results" for _, _, result in sweeps)
    every = "every one" if same == len(sweeps) else f"{same}"
    text = (
        f"After {total:,} kills{f' and {others:,} other faults' * (others > 0)} {every} of "
        f"{len(sweeps)} sweeps ended with the results of an "
        "undisturbed sweep, byte for byte."
    )
    spent = " The aim was a thousand; the time on the machine ran out before."
    return text + spent * (total < 1000)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None or "wall_ms" not in row:
        return "–"
    wall = f"{row['wall_ms']:.3g}"
    return f"{wall} ({row['graph_ms']:.3g})" if "graph_ms" in row else wall


def plot(found: list[dict[str, Any]], path: Path) -> None:
    """Plot the fraction of copy bandwidth that each contender reaches against size."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    single = [row for row in found if row["algorithm"] == "adamw" and "groups" not in row["set"]]
    series = [("weightdecay, in a CUDA graph", "weightdecay", "graph_ms", "C0-o")]
    series += [("torch fused, in a CUDA graph", "torch fused", "graph_ms", "C1-o")]
    series += [(name, name, "wall_ms", f"C{number}--s") for number, name in enumerate(CONTENDERS)]
    for label, name, key, style in series:
        points = sorted(
            (row["weights"], row["floor_ms"] / row[key])
            for row in single
            if row["contender"] == name and key in row
        )
        axes.plot(*zip(*points, strict=True), style, label=label, markersize=4)
    axes.axhline(1, color="0.6", linewidth=0.8)
    axes.set(xscale="log", xlabel="parameters", ylabel="share of copy bandwidth", ylim=(0, 1.05))
    axes.set_title(
        "One AdamW step, float32, one H200 (dashed: in a loop with the host)", fontsize=10
    )
    figure.legend(fontsize=8, frameon=False, loc="outside right upper")
    figure.savefig(path, dpi=130)


def curve(path: Path) -> None:
    """Plot the errors of the CIFAR-10 run against its epochs."""
    from matplotlib import pyplot

    lines = (HERE / "results" / "cifar10-shakeshake26.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in lines.splitlines()[1:]]
    figure, axes = pyplot.subplots(figsize=(8, 3.5), layout="constrained")
    for name in ("train", "validation", "test"):
        errors = [100 * record[f"{name}_error"] for record in records]
        axes.plot([record["epoch"] for record in records], errors, ".-", label=name)
    axes.set(xlabel="epoch", ylabel="error, %", ylim=(0, None))
    axes.set_title("Shake-Shake 26 2x64d on CIFAR-10, AdamW, one cosine", fontsize=10)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


def filled(text: str, name: str, made: str) -> str:
    """Return a page with new text between the marks of a name."""
    begin, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    before, begun, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(
            f"A page must have the marks <!-- {name} --> and <!-- /{name} -->. Put them on "
            "lines of their own."
        )
    return f"{before}{begin}{made}{end}{after}"


def tables() -> dict[Path, dict[str, str]]:
    """Return the texts between the marks of each page, by name."""
    own = {"kills": kills((HERE / "results" / "kills.txt").read_text(encoding="utf-8"))}
    for device, unit in (("h200", "GPU"), ("cpu", "core")):
        own[device] = table(rows(f"step-{device}.jsonl"))
        own[f"lanes-{device}"] = lanes_table(rows(f"lanes-{device}.jsonl"))
        own[f"sweeps-{device}"] = sweeps_table(rows(f"sweeps-{device}.jsonl"), unit)
    return {README: own}


def texts() -> dict[Path, str]:
    """Return the new text of each page."""
    pages = {}
    for path, parts in tables().items():
        text = path.read_text(encoding="utf-8")
        for name, made in parts.items():
            text = filled(text, name, made)
        pages[path] = text
    return pages


def main() -> None:
    """Write the pages and the plots."""
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
    plot(rows("step-h200.jsonl"), HERE / "step.png")
    curve(HERE / "cifar10.png")


if __name__ == "__main__":
    main()
