"""What is said of a training: a line while it runs, tables when it has ended."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from weightdecay.cli.progress import duration
from weightdecay.records import Progress, Record
from weightdecay.table import error, shown, table

_ROWS = 12


def line(progress: Progress) -> str:
    """Return how far a training is."""
    speed = progress.speed
    parts = [
        f"epoch {progress.epoch}/{progress.epochs}",
        f"loss {progress.loss:#.3g}",
        f"{progress.metric or 'error'} {error(progress.error, progress.metric, digits=1)}",
        f"η {progress.multiplier:.2f}",
        f"{speed:.2g} updates/s" if speed < 10 else f"{speed:,.0f} updates/s",
        f"{duration(progress.seconds_left)} left",
    ]
    return "  ".join(parts)


def brief(progress: Progress) -> str:
    """Return as much of it as fits beside a worker's name, each word where it was before."""
    epochs = str(progress.epochs)
    found = error(progress.error, progress.metric, digits=1)
    parts = [
        f"epoch {progress.epoch:>{len(epochs)}}/{epochs}",
        f"train {progress.metric or 'error'} {found:>5}",
        f"{duration(progress.seconds_left)} left",
    ]
    return "  ".join(parts)


def of_records(records: Sequence[Record], folder: Path) -> str:
    """Return a table of the epochs of a run in a folder, evenly chosen where they are many."""
    count = min(_ROWS, len(records))
    apart = (len(records) - 1) / max(1, count - 1)
    rows = [
        (
            str(record.epoch),
            shown(record.train_loss, 4),
            error(record.train_error, record.metric),
            error(record.validation_error, record.metric),
            error(record.test_error, record.metric),
            shown(record.weight_norm, 4),
        )
        for record in (records[round(row * apart)] for row in range(count))
    ]
    errors = (f"{part} {records[0].metric or 'error'}" for part in ("train", "validation", "test"))
    told = table([("epoch", "train loss", *errors, "weight norm"), *rows])
    left_out = len(records) - count
    if left_out:
        export = f"weightdecay export {folder} run.csv"
        told += f"\n{left_out} epochs between are not shown: `{export}` writes them all."
    return told


def of_ensembles(
    judged: Iterable[tuple[int, float, float | None]], metric: str | None = None
) -> str:
    """Return a table of ensembles' sizes, errors and top-5 errors, which a metric has none of."""
    rows = [
        (str(members), error(found, metric), error(top5, metric)) for members, found, top5 in judged
    ]
    return table([("solutions averaged", f"test {metric or 'error'}", "top-5 error"), *rows])
