"""The records of lanes at the end of an epoch.

`total` is the number of updates in the whole run. Lanes may be followed by twins, which leave no
records: `count` is the number without them.
"""

from collections.abc import Sequence

from weightdecay.records import Record, finite, packed
from weightdecay.runs.lanes import Evaluation, Lanes


def lanes_to_record(lanes: Lanes, count: int, total: int) -> list[int]:
    """Return the lanes that leave a record of this epoch, including those that have diverged."""
    epoch, config = lanes.updates // lanes.per_epoch, lanes.configs[0]
    if epoch == config.epochs or (config.evaluate_every and epoch % config.evaluate_every == 0):
        return list(range(count))
    return sorted({*cycles_ended(lanes, count, total), *_not_finite(lanes, count)})


def cycles_ended(lanes: Lanes, count: int, total: int) -> dict[int, int]:
    """Return the lanes whose last update was the last of a cycle, and the number of that cycle.

    A cycle without an end ends with the run. A cycle that the run cuts short has not ended.
    """
    found = {}
    for lane, schedule in enumerate(lanes.schedules[:count]):
        cycle = schedule.cycle(lanes.updates - 1)
        if lanes.updates == (total if cycle.end is None else cycle.end):
            found[lane] = cycle.index
    return found


def _not_finite(lanes: Lanes, count: int) -> list[int]:
    """Return the lanes whose loss or weights are no longer finite."""
    losses = [loss for loss, _ in lanes.gathered()[:count]]
    return [
        lane
        for lane, loss in enumerate(losses)
        if finite(loss) is None or finite(lanes.weight_norm(lane)) is None
    ]


def records_of(lanes: Lanes, due: Sequence[int], total: int) -> list[Record]:
    """Evaluate all lanes, and return the records of those that are due."""
    assert lanes.task.choices is not None
    tested = lanes.evaluate(lanes.task.test)
    chosen = tested if lanes.task.choices is lanes.task.test else lanes.evaluate(lanes.task.choices)
    gathered, cycles = lanes.gathered(), cycles_ended(lanes, len(lanes.configs), total)
    records = []
    for lane in due:
        config, (loss, error) = lanes.configs[lane], gathered[lane]
        norm = lanes.weight_norm(lane)
        lr, decay = lanes.rates(lane)
        judged = loss, norm, chosen[lane].error, tested[lane].error
        diverged = any(finite(value) is None for value in judged)
        ended = diverged or lanes.updates == total
        record = Record(
            run=config.identity,
            epoch=lanes.updates // lanes.per_epoch,
            updates=lanes.updates,
            train_loss=finite(loss),
            train_error=finite(error),
            validation_loss=finite(chosen[lane].loss),
            validation_error=finite(chosen[lane].error),
            validation_error_top5=finite(chosen[lane].error_top5),
            test_loss=finite(tested[lane].loss),
            test_error=finite(tested[lane].error),
            test_error_top5=finite(tested[lane].error_top5),
            lr=lr,
            decay=decay,
            weight_norm=finite(norm),
            cycle_ended=lane in cycles,
            budget=total,
            cycle_updates=lanes.schedules[lane].cycle(lanes.updates - 1).length or total,
            missed=_missed(tested[lane]) if config.keep_missed and ended else None,
            metric=lanes.task.measure.name,
            diverged=diverged,
        )
        records.append(record)
    return records


def _missed(tested: Evaluation) -> str:
    assert tested.missed is not None, "refused before training with several processes"
    return packed(tested.missed.tolist())
