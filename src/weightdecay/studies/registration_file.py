"""The file of a registration, `registered.toml`, and the study of its second stage."""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from weightdecay import files
from weightdecay.notation import numbers
from weightdecay.records import RunConfig
from weightdecay.results.choosing import SLOPES, Choice, Column
from weightdecay.results.grouping import way_of
from weightdecay.results.judging import MARGIN
from weightdecay.studies.registration import Method, Registration

#: The files of a registration, beside the sweep's log, and the folder of its second stage.
FILE, STUDY, SECOND = "registered.toml", "judge.toml", "judging"
_RULES = f"""\
[rules]
choice = \"\"\"
In a column (one learning rate), with m its lowest mean error, an error e becomes
1 - exp(-(e/m - 1)/0.1). A parabola in log2 of the decay, weighted by the number of seeds, is fitted
to the settings within 1.5 doublings of the lowest; its vertex is the column's decay, to three
digits, or the lowest setting if fewer than three are near, or the parabola has no vertex among
them. The chosen column has the lowest error there. A run that diverged counts as the worst.\"\"\"
estimate = "mean over seeds of ln(error / other error), seed by seed"
interval = \"\"\"
95 %, Student's t over seeds. Its variance includes that of the test set, which all seeds share,
from the examples that each run missed.\"\"\"
better = "the upper end is below 0"
as_good = "the upper end is below ln {MARGIN}"
regret = \"\"\"
Test error at another learning rate with the decay that is carried there, lambda ~ alpha^(-s),
minus that with its own best decay; the mean over pairs of learning rates within a seed, then over
seeds.\"\"\"
slopes = {list(SLOPES)}
pairs = ["a/2 to 2a", "2a to a/2", "a to 4a", "a to a/4"]  # a is the chosen learning rate
"""


def check_new(folder: Path) -> None:
    """Refuse a folder that is registered: what was registered stays as it is."""
    if (folder / FILE).exists():
        raise FileExistsError(
            f"{folder / FILE} must not be there yet: what was registered stays as it is. Move it "
            "away to register anew."
        )


def registered_for(folder: Path) -> list[Path]:
    """Return the registered folders whose second stage a folder is; several after `reproduce`."""
    if folder.name != SECOND:
        return []
    own = folder.parent / FILE
    return [path.parent for path in (own, *folder.parent.glob(f"*/{FILE}")) if path.is_file()]


def only_carry(folder: Path) -> set[int]:
    """Return the seeds of a second stage that carry decays and judge no comparison."""
    found = [read(path) for path in registered_for(folder)]
    judges = {seed for one in found for seed in one.judges}
    return {seed for one in found for seed in one.carriers} - judges


def write(registration: Registration, folder: Path) -> tuple[Path, Path]:
    """Write the registration and, before it, the study of its second stage.

    Of several processes, the first one writes it, and the others raise FileExistsError.
    """
    paths = folder / FILE, folder / STUDY
    with (folder / f".{FILE}.lock").open("ab") as lock:
        files.lock(lock, wait=True)
        check_new(folder)
        for path, text in ((paths[1], _study(registration)), (paths[0], _text(registration))):
            with files.written(path) as stream:
                stream.write(text.encode())
    return paths


def _text(registration: Registration) -> str:
    seen = {"runs": registration.runs, "sha256": registration.digest}
    parts = [
        "# Written by `weightdecay register`, before any run of the second stage.\n",
        f"date = {registration.date}\n",
        *_lines(commit=registration.commit, source=registration.source),
        *_lines(judges=_span(registration.judges), carriers=_span(registration.carriers)),
        *_lines(compared=registration.compared),
        "\n[first_stage]\n",
        *_lines(**seen),
        "\n",
        _RULES,
    ]
    for method in registration.methods.values():
        choice = method.choice
        parts += [
            "\n[[chosen]]\n",
            *_lines(name=method.name, settings=method.settings, carries=method.carries),
            *_lines(error=choice.error),
            *(_lines(limit=method.limit) if math.isfinite(method.limit) else []),
            *([f"edges = {json.dumps(choice.edges)}\n"] if choice.edges else []),
            "columns = [  # learning rate, best decay, its error, whether it is inside the grid\n",
            *(
                f"    [{one.lr!r}, {one.decay!r}, {one.error!r}, {_value(one.inside)}],\n"
                for one in choice.columns.values()
            ),
            "]\n[chosen.run]\n",
            *_lines(**_stated(method.config)),
        ]
    return "".join(parts)


def _study(registration: Registration) -> str:
    """Return a study of the second stage: each setting with its seeds."""
    seeds: dict[RunConfig, list[int]] = {}
    for cell in registration.cells():
        seeds.setdefault(replace(cell, seed=0), []).append(cell.seed)
    parts = [f"# The second stage of {FILE}.\n"]
    for config, own in seeds.items():
        stated = {**_stated(config), "seed": own}
        parts += ["\n[[grid]]\n", *_lines(**stated)]
    return "".join(parts)


def _stated(config: RunConfig) -> dict[str, Any]:
    """Return a configuration without its seed and what it leaves unsaid."""
    default = {field.name: field.default for field in fields(RunConfig)}
    return {
        name: value
        for name, value in config.as_dict().items()
        if name != "seed" and value != default[name]
    }


def _lines(**values: Any) -> list[str]:
    return [f"{name} = {_value(value)}\n" for name, value in values.items()]


def _value(value: Any) -> str:
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _span(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}..{seeds[-1]}" if seeds else ""


def read(folder: Path) -> Registration:
    """Read a folder's registration."""
    path = folder / FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} must be registered, and has no {FILE}. Run `weightdecay register {folder}`."
        )
    try:
        said = tomllib.loads(path.read_text("utf-8"))
        methods = {one["name"]: _read_method(one) for one in said["chosen"]}
        return Registration(
            date=str(said["date"]),
            commit=said["commit"],
            source=said["source"],
            runs=said["first_stage"]["runs"],
            digest=said["first_stage"]["sha256"],
            judges=_seeds(said["judges"]),
            carriers=_seeds(said["carriers"]),
            compared=tuple((one, other) for one, other in said["compared"]),
            methods=methods,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must be what `weightdecay register` wrote, and cannot be read: {error}."
        ) from None


def _read_method(said: Mapping[str, Any]) -> Method:
    config = RunConfig(**said["run"])
    columns = {lr: Column(lr, decay, error, inside) for lr, decay, error, inside in said["columns"]}
    decay = getattr(config, way_of(config))
    edges = tuple(said.get("edges", ()))
    choice = Choice(config.lr, decay, said["error"], columns, edges)
    limit = said.get("limit", math.inf)
    return Method(said["name"], config, choice, said["settings"], said["carries"], limit)


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(int(seed) for seed in numbers(text)) if text else ()
