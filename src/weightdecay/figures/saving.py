"""Write pictures to disk: complete or not at all, with the same bytes for the same figure."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from weightdecay import checks
from weightdecay.figures.sheet import styled
from weightdecay.files import written

# No dates and no versions: a file must not change from day to day.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def save(
    figure: Figure, path: Path, *, formats: Sequence[str] = ("png", "svg", "pdf")
) -> list[Path]:
    """Write a figure in each format beside the others, and return where.

    `path` has no suffix: each format adds its own.
    """
    paths = [
        path.with_name(f"{path.name}.{checks.one_of('formats', form, _METADATA)}")
        for form in formats
    ]
    for target, form in zip(paths, formats, strict=True):
        with styled(), written(target) as file:
            figure.savefig(file, format=form, metadata=_METADATA[form])
    return paths
