"""Registrations that came before a folder's `registered.toml`, which states them again.

`earlier.toml` beside it lists them: files that were committed before their seeds were trained. What
`registered.toml` has beyond them was added later.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

#: The file, beside `registered.toml`.
EARLIER = "earlier.toml"


@dataclass(frozen=True)
class Earlier:
    """A file in the folder above, its date, and the commit that added it.

    `methods` are those whose settings and seeds it states, `carried` those whose carried decays it
    states, and `compared` the pairs that it compares, all by their names in `registered.toml`.
    """

    file: str
    date: str
    commit: str
    methods: tuple[str, ...]
    carried: tuple[str, ...]
    compared: tuple[frozenset[str], ...]


def read_earlier(folder: Path, methods: Collection[str]) -> tuple[Earlier, ...]:
    """Read the earlier registrations of a folder, of some of its methods; most have none."""
    path = folder / EARLIER
    if not path.is_file():
        return ()
    try:
        said = tomllib.loads(path.read_text("utf-8"))
        return tuple(_earlier(one, folder, methods) for one in said["registered"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must list what was registered earlier, each with `file`, `date`, `commit`, "
            f"`methods`, `carried` and `compared`, and cannot be read: {error}."
        ) from None


def _earlier(said: Mapping[str, Any], folder: Path, methods: Collection[str]) -> Earlier:
    """Return one of them; a file must be there, and names must be registered."""
    for name in ("methods", "carried", "compared"):
        if not isinstance(said[name], list):
            raise TypeError(f"`{name}` must be a list, got {said[name]!r}")
    if not isinstance(said["commit"], str):
        raise TypeError(f"`commit` must be a text, got {said['commit']!r}")
    if not (folder.parent / said["file"]).is_file():
        raise ValueError(f"{folder.parent} has no {said['file']}")
    named = {*said["methods"], *said["carried"], *chain.from_iterable(said["compared"])}
    if unknown := named - {*methods}:
        raise ValueError(f"{', '.join(sorted(unknown))} is not registered")
    return Earlier(
        file=said["file"],
        date=str(said["date"]),
        commit=said["commit"],
        methods=tuple(said["methods"]),
        carried=tuple(said["carried"]),
        compared=tuple(map(frozenset, said["compared"])),
    )
