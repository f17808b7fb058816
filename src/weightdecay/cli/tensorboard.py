"""A run's curves for TensorBoard, which is imported only if asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weightdecay.records import Record


@contextmanager
def board(folder: Path | None, run: str) -> Iterator[Callable[[Record], None]]:
    """Yield a function that writes a record to a folder; without a folder it does nothing."""
    if folder is None:
        yield lambda _: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            f"`tensorboard` needs a package that is not installed: {error}. "
            "Run `pip install tensorboard`."
        ) from error
    # A resumed training yields all its records again: purge_step hides those written before.
    writer: Any = SummaryWriter(str(folder / run), purge_step=0)
    try:
        yield lambda record: _draw(writer, record)
    finally:
        writer.close()


def _draw(writer: Any, record: Record) -> None:
    error = record.metric or "error"
    curves = {
        "loss/train": record.train_loss,
        "loss/validation": record.validation_loss,
        "loss/test": record.test_loss,
        f"{error}/train": record.train_error,
        f"{error}/validation": record.validation_error,
        f"{error}/test": record.test_error,
        "lr": record.lr,
        "decay": record.decay,
        "weight_norm": record.weight_norm,
    }
    for name, value in curves.items():
        if value is not None:
            writer.add_scalar(name, value, record.updates)
