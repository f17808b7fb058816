"""The file of a registration, `registered.toml`, and the study of its second stage."""

import hashlib
import json
import math
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from weightdecay import files
from weightdecay.notation import numbers
from weightdecay.records import RunConfig
from weightdecay.results.choosing import Choice, Column
from weightdecay.results.grouping import way_of
from weightdecay.studies.earlier import read_earlier
from weightdecay.studies.judging_rules import UNSEALED, as_said
from weightdecay.studies.registration import Block, Method, Registration

#: The files of a registration, beside the sweep's log, and the folder of its second stage.
FILE, STUDY, SECOND = "registered.toml", "judge.toml", "judging"
_HEAD = """\
# Written by `weightdecay register`, before any run of the second stage. The hash is of all that
# follows, without comments and spaces.
"""
_WIDTH = 100


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
    """Return the file: a hash, and after it what is hashed."""
    stated = _stated_in(registration)
    return f"{_HEAD}sha256 = {_value(_digest(tomllib.loads(stated)))}\n{stated}"


def _digest(said: Mapping[str, Any]) -> str:
    """Return a hash of what a file says but for this hash; comments and spaces do not count."""
    hashed = {name: value for name, value in said.items() if name != "sha256"}
    text = json.dumps(hashed, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _stated_in(registration: Registration) -> str:
    seen = {"runs": registration.runs, "sha256": registration.digest}
    parts = [
        f"date = {registration.date}\n",
        *_lines(commit=registration.commit, source=registration.source),
        *_lines(judges=_span(registration.judges), carriers=_span(registration.carriers)),
        *_lines(compared=registration.compared),
        "\n[first_stage]\n",
        *_lines(**seen),
        "\n[rules]  # in `pairs`, a is the chosen learning rate\n",
        *(f"{name} = {_rule(rule)}\n" for name, rule in registration.rules.items()),
    ]
    for method in registration.methods.values():
        choice = method.choice
        parts += [
            "\n[[chosen]]\n",
            *_lines(name=method.name, settings=method.settings, carries=method.carries),
            *_lines(error=choice.error),
            *(_lines(limit=method.limit) if math.isfinite(method.limit) else []),
            *([f"edges = {json.dumps(choice.edges)}\n"] if choice.edges else []),
            "grid = [  # what was searched: all of these learning rates with all of these decays\n",
            *(f"    {{ {_block(one)} }},\n" for one in method.grid),
            "]\n",
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


def _rule(rule: str | Sequence[Any]) -> str:
    """Return a rule; if its words are long, on lines of their own."""
    if not isinstance(rule, str) or len(rule) < _WIDTH - 20:
        return _value(rule)
    lines = textwrap.fill(rule, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return f'"""\n{lines}"""'


def _block(one: Block) -> str:
    values = {"lrs": one.lrs, "decays": one.decays, "seeds": _seeds_as_stated(one.seeds)}
    return ", ".join(f"{name} = {_value(value)}" for name, value in values.items())


def _seeds_as_stated(seeds: Sequence[int]) -> str | Sequence[int]:
    """Return seeds as a range if they are one."""
    return _span(seeds) if 1 < len(seeds) == seeds[-1] - seeds[0] + 1 else seeds


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
        _check(said, methods)
        found = Registration(
            date=str(said["date"]),
            commit=said["commit"],
            source=said["source"],
            runs=said["first_stage"]["runs"],
            digest=said["first_stage"]["sha256"],
            judges=_seeds(said["judges"]),
            carriers=_seeds(said["carriers"]),
            compared=tuple((one, other) for one, other in said["compared"]),
            methods=methods,
            rules=as_said(said.get("rules", {})),
            sha256=said.get("sha256", ""),
            edited=_is_sealed(said, methods) and said.get("sha256") != _digest(said),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must be what `weightdecay register` wrote, and cannot be read: {error}."
        ) from None
    return replace(found, earlier=read_earlier(folder, methods))


def _check(said: Mapping[str, Any], methods: Mapping[str, Method]) -> None:
    """Refuse what no registration says, whatever its hash."""
    for name in ("commit", "source", "sha256"):
        if not isinstance(said.get(name, ""), str):
            raise TypeError(f"`{name}` must be a text, got {said[name]!r}")
    for name in ("judges", "carriers"):
        seeds = said[name]
        listed = isinstance(seeds, list) and all(type(seed) is int for seed in seeds)
        if not (listed or isinstance(seeds, str)):
            raise TypeError(f'`{name}` must be seeds such as "1000..1023", got {seeds!r}')
    if not isinstance(said.get("rules", {}), dict):
        raise TypeError(f"`rules` must be a table, got {said['rules']!r}")
    if len(methods) < len(said["chosen"]):
        raise ValueError("two chosen settings have the same name")
    unknown = {name for pair in said["compared"] for name in pair} - {*methods}
    if unknown:
        raise ValueError(f"no setting is chosen for {', '.join(sorted(unknown))}, to be compared")


def _is_sealed(said: Mapping[str, Any], methods: Mapping[str, Method]) -> bool:
    """Whether a file must have its hash: those from before there was one state less."""
    more = said.get("rules", {}).keys() - UNSEALED
    return "sha256" in said or bool(more) or any(method.grid for method in methods.values())


def _read_method(said: Mapping[str, Any]) -> Method:
    config = RunConfig(**said["run"])
    columns = {lr: Column(lr, decay, error, inside) for lr, decay, error, inside in said["columns"]}
    decay = getattr(config, way_of(config))
    edges = tuple(said.get("edges", ()))
    choice = Choice(config.lr, decay, said["error"], columns, edges)
    limit = said.get("limit", math.inf)
    grid = tuple(
        Block(tuple(one["lrs"]), tuple(one["decays"]), _seeds(one["seeds"]))
        for one in said.get("grid", ())
    )
    return Method(said["name"], config, choice, said["settings"], said["carries"], limit, grid)


def _seeds(stated: str | Sequence[int]) -> tuple[int, ...]:
    if not isinstance(stated, str):
        return tuple(stated)
    return tuple(int(seed) for seed in numbers(stated)) if stated else ()
