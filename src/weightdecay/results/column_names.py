"""What each column of a foreign table is, by its name.

Settings are looked for under the names that people give them, alone or at the end of a longer one
(`optimizer.lr`, `config/optim/weight_decay`, Optuna's `params_lr`, W&B's `lr.value`). The words in
a metric's name say what it measures (`acc`, `loss`), and on which split (`val`, `test`).
If two columns fit equally well and differ, nothing is guessed.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

#: What a column can be, and the names it is known by; what it is called here comes first.
SETTINGS: dict[str, tuple[str, ...]] = {
    "lr": (
        *("lr", "learning_rate", "learningrate", "alpha", "base_lr", "init_lr", "initial_lr"),
        *("max_lr", "peak_lr", "lr0"),
    ),
    "decay": (
        *("decay", "weight_decay", "weightdecay", "wd", "lambda", "l2", "l2_reg"),
        "normalized_decay",
    ),
    "seed": ("seed", "random_seed", "manual_seed", "random_state"),
    "state": ("state", "status"),
    "diverged": ("diverged", "has_diverged"),
    "updates": ("updates", "num_updates", "total_updates", "total_steps", "max_steps"),
}
LABELS: dict[str, tuple[str, ...]] = {
    "algorithm": ("algorithm", "optimizer", "optim", "opt", "optimizer_name"),
    "schedule": ("schedule", "scheduler", "lr_schedule", "lr_scheduler", "lr_scheduler_type"),
    "model": ("model", "arch", "architecture", "model_name", "network"),
    "task": ("task", "dataset", "dataset_name"),
    "epochs": ("epochs", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs"),
    "batch": ("batch", "batch_size", "train_batch_size", "per_device_train_batch_size"),
    "precision": ("precision",),
}
#: What tells the rows of one run apart from those of others, and how far each row is. A table may
#: have several of each.
LOGGED: dict[str, tuple[str, ...]] = {
    "run": (
        *("run", "run_id", "run_name", "name", "trial", "trial_id", "trial_number"),
        "job_id",
    ),
    "epoch": (
        *("epoch", "current_epoch", "step", "_step", "global_step", "current_step"),
        *("iteration", "iter", "training_iteration"),
    ),
}
#: The metrics, which are looked for by words.
METRICS = ("error", "validation_error", "train_loss")
ROLES = (*SETTINGS, *LABELS, *LOGGED, *METRICS)

_KINDS = {
    "error": {"error", "err", "errors"},
    "accuracy": {"accuracy", "acc", "acc1", "acc5", "top1"},
    "loss": {"loss", "nll", "perplexity", "ppl", "mse", "rmse", "mae"},
}
_TEST, _TRAIN = {"test", "testing"}, {"train", "training"}
_VALIDATION = {"val", "valid", "validation", "eval", "dev"}
_TOP5, _NEVER = {"top5", "acc5"}, {"std", "stderr", "sem"}
# A column that says nothing of what it measures; Optuna's objective is one.
_NAMELESS = ("value", "objective", "metric", "score", "target", "result")
# What is logged while training is an epoch's rate, not the run's.
_SPLITS = _TRAIN | _VALIDATION | _TEST | {"summary"}
_PREFIXES = ("params_", "user_attrs_")
# What has a name or a step that is not a run's.
_CONFIGURED = {name for names in LABELS.values() for name in names} | {"data"}


@dataclass(frozen=True)
class Metric:
    """A metric's column, what it measures, and on which split: "test", "validation", "training".

    It is an error, an accuracy or a loss. Kind and split are None if the name does not say.
    """

    column: str
    kind: str | None
    split: str | None
    top5: bool = False


def find(table: Mapping[str, Sequence[Any]], role: str) -> str | None:
    """Return the column of a setting or label; None if there is none."""
    names = (SETTINGS | LABELS)[role]
    whole = [column for column in table if _plain(column) in names]
    ends = [
        column
        for column in table
        if {_parts(column)[-1], "_".join(_parts(column)[-2:])} & set(names)
        and not _SPLITS & set(_parts(column)[:-1])
    ]
    return _only(table, whole, role) or _only(table, ends, role)


def naming(table: Mapping[str, object], roles: Iterable[str]) -> str:
    """Return how to name settings that were not found, with the columns whose names are nearest."""
    known = {_plain(column): column for column in table}
    told = []
    for role in roles:
        close = [
            known[near]
            for name in SETTINGS[role]
            for near in difflib.get_close_matches(name, list(known), n=1, cutoff=0.8)
        ]
        told.append(f"{role!r}: {repr(close[0]) if close else '…'}")
    return f"columns={{{', '.join(told)}}}"


def find_all(table: Mapping[str, object], role: str) -> list[str]:
    """Return the columns of a run's names, or of epochs and steps, in the order of their names.

    A part of the configuration is neither: `optimizer.name`, `scheduler.step`, `params_step`.
    """
    names = LOGGED[role]
    found = [
        column
        for column in table
        if _parts(column)[-1] in names
        and not _CONFIGURED & set(_parts(column)[:-1])
        and not (role == "epoch" and column.lower().startswith(("params_", "config.", "config/")))
    ]
    return sorted(found, key=lambda column: names.index(_parts(column)[-1]))


def metrics(table: Mapping[str, Sequence[Any]], kind: str | None) -> dict[str, Metric]:
    """Return the columns of the metrics that are there, by role.

    Of several kinds, an error is preferred to an accuracy and that to a loss, unless `kind` is
    given.
    """
    known = [metric for column in table if (metric := _metric(column)) is not None]
    found: dict[str, Metric] = {}
    losses = [one.column for one in known if one.split == "training" and one.kind == "loss"]
    if len(losses) == 1:
        found["train_loss"] = Metric(losses[0], "loss", "training")
    known = [one for one in known if one.split != "training"]
    for wanted in _KINDS if kind is None else (kind,):
        tested, chosen, bare = (
            [one for one in known if one.kind == wanted and one.split == split]
            for split in ("test", "validation", None)
        )
        if bare and chosen and not tested and wanted != "error":
            # Keras calls the training's so; others the test's.
            raise ValueError(
                f"The {wanted} to report must be told from training's, got {bare[0].column!r} "
                f"beside {chosen[0].column!r}. Name it: columns={{'error': {chosen[0].column!r}}}."
            )
        tested = tested or bare
        if tested or chosen:
            for role, metrics in (("error", tested), ("validation_error", chosen)):
                column = _only(table, [one.column for one in metrics], role)
                if column is not None:
                    found[role] = next(one for one in metrics if one.column == column)
            return found
    nameless = [column for column in table if _plain(column) in _NAMELESS]
    column = _only(table, nameless, "error")
    if column is not None:
        found["error"] = Metric(column, kind, None)
    return found


def unused(table: Mapping[str, Sequence[Any]], found: Mapping[str, Metric]) -> list[str]:
    """Return a sentence on each validation metric that could not be chosen on."""
    main = found.get("error")
    if main is None or "validation_error" in found:
        return []
    known = (metric for column in table if (metric := _metric(column)) is not None)
    return [
        f"Column {one.column!r} ({one.kind}) is not used, and settings are chosen on "
        f"{main.column!r} ({main.kind}). To choose on validation, give both the same kind of "
        "metric."
        for one in known
        if one.split == "validation" and one.kind != main.kind and one.column != main.column
    ]


def named(column: str, word: str, kind: str | None) -> Metric:
    """Return the metric of a column that the caller named, and the word it was named by.

    What the column's own name does not say, the word may: `accuracy`, `test_error`.
    """
    metric, told = _described(column), _described(word)
    said = told.kind if word not in METRICS else None
    return replace(metric, kind=kind or said or metric.kind, split=metric.split or told.split)


def words_of(table: Mapping[str, object], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the word that a mapping has for each role; raise if a word or a column is unknown."""
    words: dict[str, str] = {}
    for word, column in columns.items():
        role = _role(word)
        if role is None:
            raise ValueError(
                f"`columns` must use {', '.join(ROLES)}, or common words for them such as "
                f"weight_decay or accuracy, got {word!r}.{_near(word, ROLES)} To separate runs by "
                "another column, name it in `labels`."
            )
        if role in words:
            raise ValueError(
                f"`columns` must name one column for {role}, got {words[role]!r} and {word!r}. "
                "Leave one out."
            )
        present(table, column)
        words[role] = word
    return words


def _role(word: str) -> str | None:
    """Return the role that a word is for; None if it is for none."""
    if word in ROLES:
        return word
    plain = _plain(word).replace("-", "_")
    for role, names in (SETTINGS | LABELS | LOGGED).items():
        if plain in names:
            return role
    metric = _described(word)
    if metric.kind is None:
        return "error" if plain in _NAMELESS else None
    if metric.split == "training":
        return "train_loss" if metric.kind == "loss" else None
    return "validation_error" if metric.split == "validation" else "error"


def present(table: Mapping[str, object], column: str) -> None:
    """Raise if a column is missing."""
    if column not in table:
        raise ValueError(
            f"The table must have the column {column!r}, got {', '.join(map(repr, table))}."
            f"{_near(column, table)}"
        )


def _metric(column: str) -> Metric | None:
    """Return the metric of a column that has a metric's name; None for any other column."""
    metric = _described(column)
    return None if metric.kind is None or metric.top5 or _NEVER & _words(column) else metric


def _described(column: str) -> Metric:
    """Return what the words of a column's name say of it."""
    words = _words(column)
    kinds = [kind for kind, own in _KINDS.items() if own & words]
    splits = [
        split
        for split, own in (("training", _TRAIN), ("validation", _VALIDATION), ("test", _TEST))
        if own & words
    ]
    kind = kinds[0] if len(kinds) == 1 else None
    return Metric(column, kind, splits[0] if len(splits) == 1 else None, bool(_TOP5 & words))


def _only(table: Mapping[str, Sequence[Any]], columns: Sequence[str], role: str) -> str | None:
    """Return the one column, or the first of several that are equal in every row."""
    if len(columns) > 1 and any(
        list(table[column]) != list(table[columns[0]]) for column in columns[1:]
    ):
        listed = ", ".join(map(repr, columns))
        raise ValueError(
            f"One column must be the {role}, got {listed}, which differ. "
            f"Name the right one: columns={{{role!r}: {columns[0]!r}}}."
        )
    return columns[0] if columns else None


def _plain(column: str) -> str:
    """Return a name without what Optuna and W&B put before and after it."""
    plain = column.strip().lower().replace(" ", "_").removesuffix(".value")
    plain = plain.removeprefix("config.").removeprefix("config/")
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain


def _parts(column: str) -> list[str]:
    return re.split(r"[./]", _plain(column))


def _words(column: str) -> set[str]:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", column)
    return set(re.split(r"[^a-z0-9]+", spaced.lower()))


def _near(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
