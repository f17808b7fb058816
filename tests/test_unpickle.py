"""A pickle gives its arrays and runs nothing."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightdecay.tasks.unpickle import unpickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
KINDS = ["u1", "<i8", ">i4", "<f4", "f8", "?", "S3", "<U2"]


@given(
    protocol=st.sampled_from(PROTOCOLS),
    kind=st.sampled_from(KINDS),
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    order=st.sampled_from("CF"),
)
def test_every_array_of_numbers_comes_back(
    protocol: int, kind: str, shape: list[int], order: Any
) -> None:
    array = np.arange(np.prod(shape)).astype(kind).reshape(shape).copy(order=order)
    result = unpickle(pickle.dumps({"array": array}, protocol), "file")["array"]
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_values_come_back(protocol: int) -> None:
    plain = {"list": [1, 2.5, None, True], "text": "é", "bytes": b"\x00\xff", "none": b""}
    assert unpickle(pickle.dumps(plain, protocol), "file") == plain
    number = unpickle(pickle.dumps({"number": np.float64(2.5)}, protocol), "file")["number"]
    assert number == 2.5


def test_the_authors_python_2_pickles_are_read() -> None:
    """What cPickle of Python 2 wrote for {"data": numpy.array([[7, 200]], "uint8")}."""
    written = (
        b"\x80\x02}q\x01U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
        b"q\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x01K\x02\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01"
        b"\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x02\x07\xc8tbs."
    )
    np.testing.assert_array_equal(unpickle(written, "file")["data"], [[7, 200]])


class Calls:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_that_would_run_code_is_refused_by_name(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "made"
    evil = pickle.dumps({"data": Calls(os.mkdir, str(target))}, protocol)
    with pytest.raises(
        ValueError, match=rf"^data_batch_1 .* it asks for {os.name}\.mkdir\. None of its code"
    ):
        unpickle(evil, "data_batch_1")
    assert not target.exists()
    pickle.loads(evil)
    assert target.exists()  # it would have


REFUSED = {
    "builtins.eval": (Calls(eval, "1"), r"(builtins|__builtin__)\.eval"),
    "numpy.load": (Calls(np.load, "x"), r"numpy\.load"),
    "objects": (np.array([1, "x"], object), "an array of 'O8'"),
    "a record": (np.zeros(1, [("a", "u1")]), "an array of 'V1'"),
    "a codec": (Calls(__import__("_codecs").encode, "x", "rot13"), "encode as 'rot13'"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("case", REFUSED)
def test_nothing_but_arrays_of_numbers_is_admitted(case: str, protocol: int) -> None:
    value, asked = REFUSED[case]
    with pytest.raises(ValueError, match=f"^file must be a pickle .* it asks (for|to) {asked}"):
        unpickle(pickle.dumps({"data": value}, protocol), "file")


HOLLOW = {
    "an array of 8 GB in no bytes": b"cnumpy\nndarray\n((I8000000000\nttR(I1\n(I8000000000\ntcnumpy"
    b"\ndtype\n(S'u1'\nI0\nI1\ntRI00\nS''\ntb.",
    "an attribute": b"cnumpy\ndtype.type\n.",
    "a class changed": b"cnumpy\ndtype\n}S'x'\nI1\nsb.",
    "too short": pickle.dumps({"data": np.zeros(9)})[:-20],
    "no pickle": b"<html>not found</html>",
    "nothing": b"",
    "a list": pickle.dumps([1]),
}


@pytest.mark.parametrize("case", HOLLOW)
def test_what_is_no_pickle_of_arrays_is_refused_by_name(case: str) -> None:
    with pytest.raises(ValueError, match=r"^file must be a pickle of a dictionary of arrays"):
        unpickle(HOLLOW[case], "file")


def test_a_pickle_cannot_change_what_the_next_one_meets() -> None:
    """The first gives _codecs.encode a default, and the second leaves that argument out."""
    first = b"c_codecs\nencode\n(N}S'__defaults__'\n(S'latin1'\ntstb."
    second = b"}S'data'\nc_codecs\nencode\n(S'x'\ntRs."
    for data in (first, second):
        with pytest.raises(ValueError, match=r"^file must be a pickle"):
            unpickle(data, "file")


@given(data=st.binary(max_size=200))
def test_no_bytes_do_anything_but_come_back_or_be_refused(data: bytes) -> None:
    message = ""
    try:
        unpickle(data, "file")
    except ValueError as error:
        message = str(error)
    assert not message or message.startswith("file must be a pickle of a dictionary")
