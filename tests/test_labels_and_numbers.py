"""The look: one colour, one spelling and one way to write a number, told apart in grey too."""

import math
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightdecay.colours import INK, OUTCOMES, PAPER, STROKES, luminance, shades, stroke
from weightdecay.labels import AXES, NAMES, method, name
from weightdecay.number_format import interval, number, percent, power, shared_base
from weightdecay.records import COUPLED, DECAYS, DECOUPLED
from weightdecay.studies.formats import points

# Severe colour blindness in linear RGB: Machado, Oliveira & Fernandes, 2009.
BLIND = {
    "protan": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deutan": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritan": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}


@dataclass
class Measured:
    value: float | None
    low: float = math.nan
    high: float = math.nan
    bound: str | None = None
    why: str = ""


@pytest.mark.parametrize(
    ("algorithm", "schedule", "expected"),
    [
        ("adam", "cosine", "Adam"),
        ("adamw,betas=0.9/0.98", "cosine", "AdamW"),
        ("adamw", "restarts,first=10", "AdamWR"),
        ("sgd,momentum=0.9", "constant", "SGD"),
        ("sgdw", "restarts,first=1,factor=2", "SGDWR"),
        ("adamw,amsgrad=true", "cosine", "AMSGradW"),
        ("adam,amsgrad=false", "cosine", "Adam"),
        ("torch.optim:Adagrad", "cosine", "AdaGradW"),
        ("torch.optim:RMSprop", "cosine", "RMSPropW"),
        ("torch.optim:NAdam", "restarts,first=10", "NAdamWR"),
    ],
)
def test_an_algorithm_is_spelt_as_the_paper_spells_it(
    algorithm: str, schedule: str, expected: str
) -> None:
    assert name(method(algorithm, schedule)) == expected


def test_every_algorithm_of_ours_has_a_name_and_a_stroke() -> None:
    assert set(NAMES) == set(STROKES) >= {*COUPLED, *DECOUPLED}
    assert set(AXES) == set(DECAYS)


def test_no_two_algorithms_are_drawn_alike() -> None:
    assert len(set(STROKES.values())) == len(STROKES)
    assert stroke("nadamw") not in STROKES.values()


def test_a_print_in_grey_tells_all_algorithms_apart() -> None:
    for one, other in combinations(STROKES.values(), 2):
        light, dark = sorted((luminance(one.colour), luminance(other.colour)))[::-1]
        assert one.dashes != other.dashes or light > 1.5 * dark, (one, other)


def test_points_of_l2_regularization_are_hollow() -> None:
    for coupled in ("sgd", "adam", "adagrad", "amsgrad", "rmsprop"):
        assert stroke(coupled).hollow
        assert not stroke(f"{coupled}w").hollow
        assert stroke(coupled).mark == stroke(f"{coupled}w").mark


@pytest.mark.parametrize("blindness", BLIND)
def test_a_colour_blind_reader_tells_the_algorithms_of_figure_4_apart(blindness: str) -> None:
    shown = [
        _seen(stroke(one).colour, BLIND[blindness])
        for one in ("adam", "adamr", "adamw", "sgdw", "adamwr", "sgdwr")
    ]
    assert min(math.dist(one, other) for one, other in combinations(shown, 2)) > 0.1


def test_the_members_of_a_family_differ_in_grey() -> None:
    for family in (("sgd", "sgdw", "sgdwr"), ("adam", "adamw", "adamwr")):
        for lighter, darker in pairwise(luminance(stroke(one).colour) for one in family):
            assert lighter > 1.5 * darker


@given(st.sampled_from(sorted(STROKES)), st.integers(2, 20))
def test_shades_fall_from_light_to_dark(algorithm: str, count: int) -> None:
    grey = [luminance(colour) for colour in shades(algorithm, count)]
    assert len(grey) == count
    assert all(lighter > darker for lighter, darker in pairwise(grey))
    assert shades(algorithm, 1) == [stroke(algorithm).colour]


def test_luminance_is_that_of_the_standard() -> None:
    assert luminance("#000000") == 0
    assert luminance("#ffffff") == pytest.approx(1)
    assert luminance("#ff0000") == pytest.approx(0.2126)
    assert luminance("#808080") == pytest.approx(0.2159, abs=1e-4)


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (0.125, 1.0, "2⁻³"),
        (1.0, 1.0, "2⁰"),
        (1024.0, 1.0, "2¹⁰"),
        (0.001 / 8, 0.001, "0.001·2⁻³"),
        (0.05, 0.1, "0.1·2⁻¹"),
        (0.0, 1.0, "0"),
        (0.3, 1.0, "0.3"),
        (3e-7, 1.0, "3e−07"),
    ],
)
def test_a_setting_is_a_power_of_two_where_it_is_one(
    value: float, base: float, expected: str
) -> None:
    assert power(value, base=base) == expected


@given(st.sampled_from([1.0, 0.1, 0.01, 0.001]), st.integers(-20, 20), st.integers(1, 9))
def test_a_grid_of_powers_has_a_base(base: float, first: int, count: int) -> None:
    found = shared_base([0.0, *(base * 2.0 ** (first + place) for place in range(count))])
    assert found == base


def test_a_grid_of_no_powers_has_no_base() -> None:
    assert shared_base([0.1, 0.3, 0.5]) is None
    assert shared_base([]) == 1


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        (Measured(0.931, 0.812, 1.049), "s = 0.93 [0.81, 1.05]"),
        (Measured(-0.04, -0.15, 0.07), "s = −0.04 [−0.15, 0.07]"),
        (Measured(-0.001, -0.01, 0.01), "s = 0.00 [−0.01, 0.01]"),
        (Measured(0.5), "s = 0.50"),
        (Measured(0.5, -math.inf, 0.9), "s = 0.50 [−∞, 0.90]"),
        (Measured(0.4, 0.4, math.inf, "at least", "It leaves."), "s ≥ 0.40: It leaves"),
        (Measured(0.4, -math.inf, 0.4, "at most"), "s ≤ 0.40"),
        (Measured(None, why="one seed has no error"), "s unknown: one seed has no error"),
        (Measured(math.nan), "s unknown"),
        (Measured(0.5, 0.4, 0.6, why="One is left out."), "s = 0.50 [0.40, 0.60]: One is left out"),
    ],
)
def test_an_exponent_is_said_with_its_interval_its_bound_or_its_reason(
    exponent: Measured, expected: str
) -> None:
    assert interval(exponent) == expected


def test_a_bound_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="`bound` must be one of 'at least', 'at most', got 'abou"):
        interval(Measured(1.0, bound="about"))


def test_a_tie_rounds_alike_whatever_the_last_bits_of_a_sum() -> None:
    """0.285 points were 0.29 on one run of the tests and 0.28 on another."""
    beside = (math.nextafter(0.00285, 0), 0.00285, 0.002850000000000002)
    for told in (percent, partial(points, digits=2), lambda one: number(100 * one)):
        assert len({told(one) for one in beside}) == 1


def test_an_error_is_written_in_percent() -> None:
    assert percent(0.0286) == "2.86\N{NO-BREAK SPACE}%"
    assert percent(0.5, digits=0) == "50\N{NO-BREAK SPACE}%"
    assert percent(math.nan) == "–"
    assert number(-1.234, digits=1) == "−1.2"


def test_an_outcome_can_be_read_on_white_and_on_ink_and_told_by_its_shape() -> None:
    assert len({shape for shape, _, _ in OUTCOMES.values()}) == len(OUTCOMES)
    for _, on_white, on_ink in OUTCOMES.values():
        assert (luminance(PAPER) + 0.05) / (luminance(on_white) + 0.05) >= 4.5
        assert (luminance(on_ink) + 0.05) / (luminance(INK) + 0.05) >= 4.5


def _seen(
    colour: str, blindness: tuple[tuple[float, float, float], ...]
) -> tuple[float, float, float]:
    """Return a colour as an eye without one kind of cones sees it, in sRGB's own numbers."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    mixed = [sum(map(math.prod, zip(row, linear, strict=True))) for row in blindness]
    red, green, blue = (max(part, 0) ** (1 / 2.2) for part in mixed)
    return red, green, blue
