"""Read pickles of numpy arrays without running any code that they name.

A pickle is a program that may call anything it can name. Here it can name only what numpy arrays
are made of, and it gets substitutes for those, which just store the array's description: numpy sees
only bytes, a number type and a shape. An array is never larger than its bytes in the file.
"""

import io
import pickle
import re
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

_NUMBER = re.compile(r"[?biufSU]\d*")


def unpickle(data: bytes, name: str) -> dict[str, Any]:
    """Return the dictionary in a pickle, of arrays, numbers, text, lists and the like.

    `name` is the pickle's name in errors. Text of Python 2 is read as Latin-1.
    """
    try:
        result = _Reader(io.BytesIO(data), encoding="latin1").load()
        if not isinstance(result, dict):
            raise pickle.UnpicklingError(f"it is a {type(result).__name__}")  # noqa: TRY301
        return {str(key): _plain(value) for key, value in result.items()}
    except Exception as error:
        raise ValueError(
            f"{name} must be a pickle of a dictionary of arrays, and was refused: {error}. "
            "None of its code was run. Get the file again from where it is published."
        ) from error


class _Reader(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        # numpy 2 renamed numpy.core to numpy._core.
        place = (module_name.replace("numpy.core.", "numpy._core."), global_name)
        if place not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}")
        return partial(_ADMITTED[place])  # a new object each time, since a pickle may modify it


class _Number:
    """The substitute for a dtype."""

    def __init__(self, code: str, *options: object) -> None:
        del options
        if not _NUMBER.fullmatch(code):
            raise pickle.UnpicklingError(f"it asks for an array of {code!r}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1]
        self.dtype = self.dtype if order == "|" else self.dtype.newbyteorder(order)


class _Array:
    """The substitute for an array, empty at first."""

    def __init__(self, *beginning: object) -> None:
        del beginning
        self.array: npt.NDArray[Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, number, by_columns, contents = state
        contents = contents.encode("latin1") if isinstance(contents, str) else contents
        self.array = _array(contents, number, shape, "F" if by_columns else "C")


def _array(contents: bytes, number: _Number, shape: Any, order: Any) -> npt.NDArray[Any]:
    return np.frombuffer(bytes(contents), number.dtype).reshape(shape, order=order)


def _scalar(number: _Number, contents: bytes) -> Any:
    return np.frombuffer(contents, number.dtype, count=1)[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"it asks to encode as {encoding!r}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    return b""


def _plain(value: object) -> object:
    return value.array if isinstance(value, _Array) else value


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Number,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy._core.numeric", "_frombuffer"): _array,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
}
