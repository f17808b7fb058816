"""Numbers as a person writes them: what they say is exactly what is meant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightdecay.notation import LONGEST, number, numbers, whole

ends = st.tuples(st.integers(-60, 60), st.integers(-60, 60)).map(sorted)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.05", 0.05),
        ("2^-9", 2**-9),
        ("2 ^ -9", 2**-9),
        ("1/4*0.001", 0.25 * 0.001),
        ("1/2^3", 0.125),
        ("-2^3", -8),
        ("4^0.5", 2),
        ("1e-3", 0.001),
    ],
)
def test_a_number_is_read_from_left_to_right(text: str, value: float) -> None:
    assert number(text) == value
    assert numbers(text) == [value]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_writes_reads_back_exactly(value: float) -> None:
    assert number(repr(value)) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is not a number"),
        ("fast", "'fast' is not a number"),
        ("1 2", "'1 2' is not a number"),
        ("2^", r"'2\^' is not a number"),
        ("2**3", r"'2\*\*3' is not a number"),
        ("1/0", "'1/0' is not a number"),
        ("0^-1", "is not a number"),
        ("-8^0.5", r"'-8\^0\.5' is not a number"),
        ("nan", "'nan' is not a finite number"),
        ("nan^0", "is not a finite number"),
        ("1/inf", "'1/inf' is not a finite number"),
        ("1e400", "is not a finite number"),
        ("10^400", "is not a finite number"),
        ("1e200*1e200", "is not a finite number"),
    ],
)
def test_what_is_no_number_is_refused(text: str, said: str) -> None:
    for read in (number, numbers):
        with pytest.raises(ValueError, match=said):
            read(text)


def test_a_whole_number_is_an_int() -> None:
    assert [whole(text) for text in ("60000", "2^10", "5e4")] == [60_000, 1024, 50_000]
    assert isinstance(whole("5e4"), int)
    with pytest.raises(ValueError, match=r"'2\.5' is not a whole number"):
        whole("2.5")


@given(ends)
def test_powers_of_two_are_exact(ends: list[int]) -> None:
    low, high = ends
    exact = [math.ldexp(1, exponent) for exponent in range(low, high + 1)]
    assert numbers(f"2^{low}..2^{high}") == exact


@given(ends, st.sampled_from(["0.001", "1/4*0.1", "3", "2^3"]))
def test_a_factor_applies_to_every_power(ends: list[int], factor: str) -> None:
    low, high = ends
    products = [number(factor) * 2.0**exponent for exponent in range(low, high + 1)]
    assert numbers(f"{factor}*2^{low}..2^{high}") == products


@given(ends, st.sampled_from(["10", "2", "0.5", "1.5"]))
def test_a_range_has_what_its_numbers_are_alone(ends: list[int], base: str) -> None:
    low, high = ends
    alone = [number(f"{base}^{exponent}") for exponent in range(low, high + 1)]
    assert numbers(f"{base}^{low} .. {base}^{high}") == alone


@given(ends)
def test_whole_numbers_step_by_one_and_both_ends_are_in(ends: list[int]) -> None:
    low, high = ends
    assert numbers(f"{low}..{high}") == list(range(low, high + 1))


LIKE = r"must be written like 2\^-12\.\.2\^-5, 0\.001\*2\^-3\.\.2\^3 or 0\.\.4, got"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2^-5..2^-12", r"must go from low to high.*, got '2\^-5\.\.2\^-12'\. Swap its ends"),
        ("4..0", "must go from low to high.*Swap its ends"),
        ("..", "must have whole ends or exponents.*, got '..'.*'' is not a number"),
        ("0..", "must have whole ends or exponents.*'' is not a number"),
        ("..2^3", LIKE),
        ("2^-3..3^3", "must have one base, above 0, got"),
        ("-2^1..-2^3", "must have one base, above 0, got"),
        ("0^1..0^3", "must have one base, above 0, got"),
        ("8..2^5", LIKE),
        ("2^3..32", LIKE),
        ("2^-3..0.001*2^3", f"{LIKE}.*Write the factor once, in front"),
        ("1/2^-3..2^3", LIKE),
        ("3*1..4", f"{LIKE}.*Only powers may have a factor"),
        ("0.5..4", "must have whole ends or exponents.*'0.5' is not a whole number"),
        ("2^-0.5..2^3", "must have whole ends or exponents.*'-0.5' is not a whole number"),
        ("1..2..3", "must have whole ends or exponents.*'2..3' is not a number"),
        ("1^0..1^3", "must have different numbers"),
        ("1e17..100000000000000100", "must have different numbers"),
        ("2^-1080..2^-1070", "must have finite numbers other than 0"),
        ("2^1000..2^1100", "must have finite numbers other than 0"),
        ("1e300*2^20..2^30", "must have finite numbers other than 0"),
        ("nan..4", "'nan' is not a finite number"),
        ("0..inf", "'inf' is not a finite number"),
        ("0..1e15", r"must have at most 10,000 numbers, got '0\.\.1e15'\. It has 1,000,000,000,"),
        ("2^0..2^1e9", "must have at most 10,000 numbers"),
    ],
)
def test_a_bad_range_says_requirement_value_and_cure(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        numbers(text)


def test_the_longest_range_is_allowed() -> None:
    assert len(numbers(f"1..{LONGEST}")) == LONGEST
    with pytest.raises(ValueError, match="It has 10,001"):
        numbers(f"0..{LONGEST}")
