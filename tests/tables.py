"""Tables of simulations: one row for each kind of landscape, printed or written into a page."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from weightdecay import files
from weightdecay.table import table

#: Tables by name; each has its titles first.
Tables: TypeAlias = Mapping[str, Sequence[Sequence[str]]]


def inserted(text: str, rows: Sequence[Sequence[str]], marks: tuple[str, str]) -> str:
    """Return a page with the table between its marks."""
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"The page must have the marks {marks[0]} and {marks[1]}, and has not.")
    head, *body = rows
    lines = "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body))
    return f"{before}{begin}\n\n{lines}\n\n{end}{after}"


def write(page: Path, rows: Sequence[Sequence[str]], marks: tuple[str, str]) -> None:
    """Write a table into a page, between its marks."""
    text = inserted(page.read_text("utf-8"), rows, marks)
    with files.written(page) as file:
        file.write(text.encode())


def all_inserted(page: str, tables: Tables, module: str, place: str) -> str:
    """Return a page with several tables that a module makes, each between marks with its name."""
    for name, rows in tables.items():
        begin = f"<!-- {name}: `python -m {module} --page {place}` writes this -->"
        page = inserted(page, rows, (begin, f"<!-- /{name} -->"))
    return page


def tell(description: str, tables: Callable[[], Tables], written: Callable[[str], str]) -> None:
    """Print tables, or write them into a page, as the command line asks."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--page", type=Path, help="write the tables here, between their marks")
    page: Path | None = parser.parse_args().page
    if page is None:
        sys.stdout.write("\n\n".join(table(rows) for rows in tables().values()) + "\n")
        return
    text = written(page.read_text("utf-8"))
    with files.written(page) as file:
        file.write(text.encode())


def simulate(
    description: str | None,
    row: Callable[..., tuple[str, ...]],
    kinds: Iterable[Any],
    titles: tuple[str, ...],
    *,
    marks: tuple[str, str],
    simulations: int = 1000,
) -> None:
    """Print a table, or write it into a page, as the command line asks.

    `row(kind, simulations=…)` simulates one row. Rows are simulated side by side.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--page", type=Path, help="write the table here, between its marks")
    parser.add_argument("--simulations", type=int, default=simulations, help="of each row")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="rows at a time")
    options = parser.parse_args()
    rows = [titles]
    with ProcessPoolExecutor(options.jobs) as pool:
        for one in pool.map(partial(row, simulations=options.simulations), kinds):
            rows.append(one)
            sys.stderr.write(f"{'  '.join(one)}\n")
    if options.page is None:
        sys.stdout.write(table(rows) + "\n")
    else:
        write(options.page, rows, marks)
