"""What one sweep has done, taken over into another."""

from dataclasses import asdict

from weightdecay.records import RunConfig
from weightdecay.sweeps.columns import as_result
from weightdecay.sweeps.lines import Cost, Line
from weightdecay.sweeps.store import Store


def merge(store: Store, other: Store) -> int:
    """Take over results that another folder has and this one has not; return their number."""
    mine, theirs = store.refresh(), other.refresh()
    new = {run: place for run, place in theirs.results.items() if run not in mine.results}
    again = {run: place for run, place in theirs.repeated.items() if run not in mine.repeated}
    lines: list[Line] = [("result", as_result(run)) for run in other.read(new)]
    lines += [("repeat", as_result(run)) for run in other.read(again)]
    timings = [Cost(run, *theirs.costs[run], 1) for run in sorted(new) if run in theirs.costs]
    if lines:
        with store.writing(workers=0) as writer:
            writer.write([*lines, *(("timing", asdict(cost)) for cost in timings)])
    known = store.plan() if (store.folder / "plan.jsonl").is_file() else {}
    asked = other.plan() if (other.folder / "plan.jsonl").is_file() else {}
    plain = {**known, **asked}
    store.ask_for({run: RunConfig.from_dict(config) for run, config in plain.items()})
    return len(new)
