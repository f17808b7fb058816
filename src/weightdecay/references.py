"""MODULE:NAME references to a task or an optimizer class of the user's own.

`check` looks for the name without running any code, so a sweep can refuse a misspelt name before it
starts a worker. `imported` imports it. A module is found as `python -m` would find it, including in
the current directory.
"""

import ast
import importlib
import pkgutil
import sys
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from weightdecay import checks

# A module that uses one of these may define names that its source does not show.
_HIDING = {"*", "__getattr__", "exec", "globals", "setattr", "vars"}


def check(field: str, reference: str) -> None:
    """Raise unless the module exists and, as far as its source shows, defines the name."""
    module, name = _parts(field, reference)
    spec = _found(field, reference, module)
    names = _names(module, spec)
    if spec is not None and names is not None and name not in names:
        raise _missing(field, reference, spec.origin or module, name, names)


def imported(field: str, reference: str) -> Any:
    """Return the object that the reference names."""
    module_name, name = _parts(field, reference)
    _found(field, reference, module_name)
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):
        sys.path.insert(0, here)
    module = importlib.import_module(module_name)
    if not hasattr(module, name):
        raise _missing(field, reference, module.__file__ or module_name, name, dir(module))
    return getattr(module, name)


def _parts(field: str, reference: str) -> tuple[str, str]:
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ValueError(f"A `{field}` of your own must be MODULE:NAME, got {reference!r}.")
    return module, name


def _found(field: str, reference: str, module: str) -> ModuleSpec | None:
    """Find a module and its packages, from the outermost inwards, without importing them.

    Returns None for a folder without `__init__.py` inside a package: only an import can find it.
    """
    where: Sequence[str] | None = None
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        try:
            spec = _spec(name, where)
        except KeyError:
            return None
        if spec is None:
            near = checks.did_you_mean(parts[depth - 1], _modules(where))
            raise ValueError(
                f"`{field}` must name a module as in an import (without .py), got {reference!r}, "
                f"and there is no {name}. {near}".rstrip()
                + f" Searched: {Path.cwd()} and Python's module path."
            )
        where = spec.submodule_search_locations or []
    return spec


def _spec(name: str, where: Sequence[str] | None) -> ModuleSpec | None:
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    for finder in sys.meta_path:
        spec = finder.find_spec(name, where)
        if spec is not None:
            return spec
    return PathFinder.find_spec(name, [str(Path.cwd())]) if where is None else None


def _modules(where: Sequence[str] | None) -> list[str]:
    places = [str(Path.cwd()), *sys.path] if where is None else where
    return [found.name for found in pkgutil.iter_modules(places)]


def _names(module: str, spec: ModuleSpec | None) -> Collection[str] | None:
    """Return every name that a module may define; None if its source does not show them."""
    if module in sys.modules:
        return dir(sys.modules[module])
    try:
        source = spec.loader.get_source(module)  # type: ignore[union-attr]  # or AttributeError
        tree = ast.parse(source or "")
    except (AttributeError, ImportError, OSError, SyntaxError, ValueError):
        return None
    if not source:
        return None
    names, used = set[str](), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name():
                (names if isinstance(node.ctx, ast.Store) else used).add(node.id)
            case ast.alias():
                names.add((node.asname or node.name).partition(".")[0])
    return None if (names | used) & _HIDING else names


def _missing(
    field: str, reference: str, place: str, name: str, names: Collection[str]
) -> ValueError:
    near = checks.did_you_mean(name, [one for one in names if not one.startswith("_")])
    near = near.replace("`", "'")  # a user's own name, which the command line must not spell --so
    return ValueError(
        f"`{field}` must name something in {place}, got {reference!r}, and {name!r} is not in it. "
        f"{near}".rstrip()
    )
