"""Tables of a training that has ended."""

from collections.abc import Sequence

from weightdecay.records import Record
from weightdecay.runs import Ensemble
from weightdecay.table import error, shown

Rows = list[tuple[str, ...]]

_ROWS = 12


def of_records(records: Sequence[Record]) -> Rows:
    """Return the epochs of a run under a header; evenly spaced ones if there are many."""
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
    return [("epoch", "train loss", *errors, "weight norm"), *rows]


def of_ensembles(ensembles: Sequence[Ensemble], metric: str | None = None) -> Rows:
    """Return ensembles' sizes and errors under a header; a metric has no top-5 error."""
    rows = [
        (str(one.members), error(one.error, metric), error(one.error_top5, metric))
        for one in ensembles
    ]
    return [("solutions averaged", f"test {metric or 'error'}", "top-5 error"), *rows]
