"""A tuner whose trials are trained by a sweep: in packs, on local processes or on Ray.

    tuning = Tuning("tuned", task="mnist1d", epochs=300, spend=1.0)
    print(tuning.run())

Trials are asked for in rounds. What is known at the beginning of a round, and what is left to train
of the last one, is read from the folder: it does not matter which process trained it, or how often
it was killed. The folder is that of a sweep, with the file `tuner.json`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightdecay import checks
from weightdecay.records import RunConfig, Spec
from weightdecay.sweeps import InProcess, Local, Store, sweep
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.kept import Kept
from weightdecay.sweeps.name_checks import check_names
from weightdecay.tune.cells import Cells
from weightdecay.tune.choosing import Chooser, choose
from weightdecay.tune.keeping import check_same, keep_changing
from weightdecay.tune.recommendation import Recommendation
from weightdecay.tune.space import Axis
from weightdecay.tune.trial import Cell
from weightdecay.tune.tuner import Tuner

if TYPE_CHECKING:
    from weightdecay.tasks import Source, Task

#: The algorithms that can be tuned: where to look for their α, and in which convention their decay
#: is.
ALGORITHMS = {
    "adamw": ("adamw", "weight_decay"),
    "sgdw": ("sgdw", "weight_decay"),
    "adam": ("adamw", "l2"),
    "sgd": ("sgdw", "l2"),
}
# The fields of a configuration that a tuner sets.
_TUNED = ("lr", "weight_decay", "normalized_decay", "l2", "epochs", "seed")


class Tuning:
    """Finds a learning rate and a decay for a run of `epochs` by training shorter ones.

    folder     where to keep the runs, and to continue from
    task       a name, MODULE:FUNCTION, a Task, or a function that returns one
    model      one of the task's models; its first, if it is not given
    algorithm  adamw, sgdw, adam or sgd, with options as in adamw,betas=0.9/0.98
    spend      what all runs together may cost, in runs of `epochs`
    at_once    the number of runs to train at once, before the next ones are chosen

    `lr`, `normalized_decay`, `shortest` and `chooser` are those of `Tuner`, and the others those
    of `RunConfig`; `seed` is the first of the seeds. Runs are annealed by a cosine. Settings are
    chosen on validation examples, by the task's metric.
    """

    @checks.arguments
    def __init__(
        self,
        folder: Path | str,
        *,
        task: "str | Source",
        epochs: int,
        model: str | None = None,
        algorithm: str = "adamw",
        batch: int = 64,
        data: int | None = None,
        validation: int | None = None,
        seed: int = 0,
        precision: str = "float32",
        spend: float = 1.0,
        at_once: int = 1,
        lr: Axis | None = None,
        normalized_decay: Axis | None = None,
        shortest: int | None = None,
        chooser: Chooser = choose,
    ) -> None:
        relative, convention = ALGORITHMS[
            checks.one_of("algorithm", Spec.parse("algorithm", algorithm).name, ALGORITHMS)
        ]
        if isinstance(validation, str):
            raise TypeError(
                "`validation` must be a number of examples: a tuner that chose on the test "
                f"examples would be judged by them, got {validation!r}."
            )
        self._at_once = checks.whole("at_once", at_once, at_least=1)
        self._source = None if isinstance(task, str) else task
        coupled = convention == "l2"
        base = RunConfig(
            task=_name(task),
            model=model or "first",
            algorithm=algorithm,
            lr=1.0,
            normalized_decay=None if coupled else 0.0,
            l2=0.0 if coupled else None,
            epochs=epochs,
            batch=batch,
            data=data,
            validation=validation,
            seed=seed,
            precision=precision,
            evaluate_every=0,
        )
        if model is not None and self._source is None:
            check_names([base])
        whole = _loaded(base.task, self._source)
        if model is None:
            base = replace(base, model=next(iter(whole.models)))
        checks.one_of("model", Spec.parse("model", base.model).name, whole.models)
        updates, guess, examples = _facts(base, whole)

        def tuner() -> Tuner:
            return Tuner(
                epochs,
                updates_per_epoch=updates,
                spend=spend,
                algorithm=relative,
                convention=convention,
                lr=lr,
                normalized_decay=normalized_decay,
                shortest=shortest,
                guess=guess,
                validation=examples,
                chooser=chooser,
            )

        self._new, self.tuner = tuner, tuner()
        self.cells = Cells(self.tuner.space, base)
        self.folder = Path(folder)
        #: How many runs of how many epochs the last plan asks for.
        self.coming: Counter[int] = Counter()
        #: Why runs could not be trained.
        self.failed: dict[Cell, str] = {}
        made = {name: value for name, value in base.as_dict().items() if name not in _TUNED}
        whole_space = asdict(self.tuner.space)
        del whole_space["convention"]  # it follows from the algorithm
        check_same(self.folder, {**whole_space, **made, "seed": seed}, self.tuner.changing)
        keep_changing(self.folder, self.tuner.changing)

    def plan(self) -> list[RunConfig]:
        """Return all runs so far, with those to make next at the end; none if there are none.

        A round that was begun is finished first, as far as the spend pays for it.
        """
        store = Store(self.folder)
        runs = store.runs()
        done = self.cells.trained(runs)
        reasons = store.ledger.failures
        # Earlier versions rounded the settings differently: each run is continued as it is kept.
        asked = [RunConfig.from_dict(values) for _, values in _planned(store)]
        asked += [run.config for run in runs]
        kept = {cell: one for one in asked if (cell := self.cells.cell(one)) is not None}
        self.failed = {
            cell: reasons[config.identity].reason
            for cell, config in kept.items()
            if config.identity in reasons and cell not in done
        }
        self.tuner = self._new()
        self.tuner.remember(done, self.failed)
        begun = [cell for cell in kept if cell not in done and cell not in self.failed]
        now = list(self._affordable(begun)) or list(self._asked())
        self.coming = Counter(self.tuner.space.ladder[cell.rung] for cell in now)
        every = (*done, *self.failed, *now) if now else ()
        return [kept[cell] if cell in kept else self.cells.config(cell) for cell in every]

    def _affordable(self, cells: list[Cell]) -> Iterator[Cell]:
        left = (self.tuner.spend - self.tuner.spent) * self.tuner.space.epochs + 1e-9
        for cell in cells:
            left -= self.tuner.space.ladder[cell.rung]
            if left >= 0:
                yield cell

    def _asked(self) -> Iterator[Cell]:
        for _ in range(self._at_once):
            try:
                trial = self.tuner.ask()
            except RuntimeError as error:
                again = f"Then run `weightdecay retry {self.folder}`, and tune again."
                raise RuntimeError(f"{error} {again}") from error
            if trial is None:
                break
            yield trial.cell

    def run(
        self, *, engine: Engine | None = None, timeout: float | None = None, progress: bool = True
    ) -> Recommendation:
        """Train round after round until the spend is used up, and return the recommendation."""
        with Kept(engine or Local()) as kept:
            kept.repeats = 0.0  # a control would not be within the spend
            used = engine if isinstance(engine, InProcess) else kept
            while plan := self.plan():
                sweep(
                    plan,
                    folder=self.folder,
                    task=self._source,
                    engine=used,
                    timeout=timeout,
                    progress=progress,
                )
        return self.recommendation()

    def recommendation(self) -> Recommendation:
        """Return the setting to use for the long run, by the runs that the last plan knew."""
        return self.tuner.recommendation()

    def long_run(self) -> RunConfig:
        """Return the configuration of the long run at the recommended setting."""
        found = self.recommendation()
        coupled = self.tuner.space.convention == "l2"
        stated = replace(
            self.cells.base,
            lr=found.lr,
            normalized_decay=None if coupled else found.decay.normalized,
            l2=found.weight_decay if coupled else None,
        )
        cell = self.cells.cell(stated)  # its decay has no rounding from λ_norm to λ and back
        return replace(stated if cell is None else self.cells.config(cell), evaluate_every=1)


def _name(task: "str | Source") -> Any:
    """Return what a configuration takes for a task: a name, or a function that has one."""
    return task if isinstance(task, str) or callable(task) else task.name


def _planned(store: Store) -> Iterator[tuple[str, dict[str, object]]]:
    try:
        yield from store.plan().items()
    except FileNotFoundError:  # no run was planned yet
        return


def _loaded(name: str, source: "Source | None") -> "Task":
    from weightdecay.tasks import given  # noqa: PLC0415 - a tuner for other loops needs no torch

    return given(name, source)


def _facts(config: RunConfig, whole: "Task") -> tuple[int, float | None, int | None]:
    """Return the updates per epoch; of classes, the error of guessing and the validation examples.

    Guessing is to name the class that most validation examples have.
    """
    from weightdecay.runs.build import updates_per_epoch  # noqa: PLC0415
    from weightdecay.tasks import split  # noqa: PLC0415

    parts = split(whole, validation=config.validation, data=config.data)
    updates = updates_per_epoch(config, parts)
    if parts.classes is None or parts.metric is not None or parts.choices is None:
        return updates, None, None
    targets = parts.choices.targets.flatten()
    return updates, 1 - int(targets.bincount().max()) / len(targets), len(targets)
