"""A random search has a surface: its optimum and s are found, with honest intervals, or refused."""

import math
import re

import numpy as np
import pytest

from tests.landscapes import QUADRATIC, Array, Truth
from tests.scattered import DECAY, RATE, coverage, search
from weightdecay.results import Landscape, Point, coupling, fit_surface, landscapes
from weightdecay.results.polynomial import fitted, powers, terms_of


def scape(x: Array, z: Array, errors: Array) -> Landscape:
    """Return the landscape of points at such logarithms, one seed each."""
    rows = zip(x, z, errors, strict=True)
    [landscape] = landscapes(
        Point(lr=float(2.0**a), decay=float(2.0**b), way="weight_decay", tested=float(error))
        for a, b, error in rows
    )
    return landscape


def plane(count: int = 60, seed: int = 0) -> tuple[Array, Array]:
    x, z = np.random.default_rng(seed).uniform(-3, 3, (2, count))
    return x, z


@pytest.mark.parametrize("s", [-0.5, 0.0, 0.7, 1.0])
def test_a_quadratic_surface_is_found_exactly(s: float) -> None:
    x, z = plane()
    errors = 0.3 + 0.006 * (x - 0.5) ** 2 + 0.0075 * (z + 0.25 + s * (x - 0.5)) ** 2
    found = fit_surface(scape(x - 7, z - 12, errors))
    assert found.exponent.value == pytest.approx(s, abs=1e-6)
    assert math.log2(found.lr.value) == pytest.approx(-6.5, abs=1e-6)
    assert math.log2(found.decay.value) == pytest.approx(-12.25, abs=1e-6)
    assert found.error.value == pytest.approx(0.3, abs=1e-9)
    assert found.used == found.points == 60
    line = found.line
    assert line is not None
    assert line.slope == pytest.approx(-s, abs=1e-6)
    assert line.intercept + line.slope * -6.5 == pytest.approx(-12.25, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.002, 0.008, 0.02])
def test_intervals_of_a_search_of_200_runs_cover_the_truth(noise: float) -> None:
    """A larger simulation, of 300 searches each: `python -m tests.scattered`."""
    seen = coverage(Truth(s=0.5), noise=noise, searches=40, first=1)
    assert seen.values >= 34
    assert seen.exponent >= 0.85
    assert seen.lr >= 0.85
    assert seen.decay >= 0.8
    assert abs(seen.bias) < seen.half / 2


def test_more_noise_gives_a_wider_interval() -> None:
    little, much = (coverage(QUADRATIC, noise=noise, searches=8).half for noise in (0.002, 0.008))
    assert 2.5 * little < much < 6 * little


def test_a_failed_run_in_the_basin_is_set_aside() -> None:
    random = np.random.default_rng(0)
    x, z = random.uniform(-3, 3, (2, 120))
    errors = 0.3 + 0.006 * x**2 + 0.0075 * (z + 0.5 * x) ** 2 + random.normal(0, 0.003, 120)
    clean = fit_surface(scape(x, z - 12, errors))
    near = np.argsort(x**2 + z**2)[:3]
    errors[near] = 0.9
    spoiled = fit_surface(scape(x, z - 12, errors))
    assert (clean.aside, spoiled.aside) == (0, 3)
    assert clean.exponent.value is not None
    assert spoiled.exponent.value == pytest.approx(clean.exponent.value, abs=0.05)
    assert spoiled.decay.value == pytest.approx(clean.decay.value, rel=0.1)


def test_a_cliff_far_from_the_best_does_not_move_it() -> None:
    random = np.random.default_rng(1)
    x, z = random.uniform(-4, 4, (2, 200))
    errors = 0.3 + 0.006 * x**2 + 0.0075 * (z + x) ** 2 + random.normal(0, 0.003, 200)
    errors = np.where(x + z > 4, 0.9, errors)
    found = fit_surface(scape(x, z - 12, errors))
    assert found.exponent.low <= 1 <= found.exponent.high
    assert found.exponent.high - found.exponent.low < 0.3


def test_runs_that_diverged_and_runs_without_decay_take_no_part() -> None:
    x, z = plane(40)
    errors = 0.3 + 0.006 * x**2 + 0.0075 * z**2
    ordinary = [
        Point(lr=float(2**a), decay=float(2 ** (b - 9)), way="weight_decay", tested=float(error))
        for a, b, error in zip(x, z, errors, strict=True)
    ]
    others = [
        Point(lr=1.0, decay=0.0, way="weight_decay", tested=0.1),
        Point(lr=2.0, decay=0.002, way="weight_decay", tested=math.nan, diverged=True),
    ]
    [alone], [together] = landscapes(ordinary), landscapes(ordinary + others)
    assert fit_surface(together) == fit_surface(alone)


def test_a_grid_of_one_seed_has_a_surface_too() -> None:
    x, z = (axis.ravel() for axis in np.meshgrid(np.arange(-3.0, 4), np.arange(-3.0, 4)))
    random = np.random.default_rng(0)
    errors = 0.3 + 0.006 * x**2 + 0.0075 * (z + 0.5 * x) ** 2 + random.normal(0, 0.002, 49)
    landscape = scape(x, z - 12, errors)
    assert not landscape.scattered
    found = fit_surface(landscape).exponent
    assert found.low <= 0.5 <= found.high


def slope(count: int) -> tuple[Array, Array, Array]:
    x, z = plane(count)
    return x, z, 0.3 + 0.006 * x**2 + 0.0075 * z**2


X, Z, ERRORS = slope(60)
NOISE = np.random.default_rng(5).normal(0.3, 0.05, 60)
SHORT = "12 settings .* of the 18 that a surface needs: run 6 more"
REFUSED = [
    (X[:12], Z[:12], ERRORS[:12], SHORT),
    (X / 10, Z, ERRORS, r"The learning rates span a factor of 1\.5, of the 4 .* further apart"),
    (X, Z / 10, ERRORS, r"The decays span a factor of 1\.5, of the 4 that"),
    (np.sign(X), Z, ERRORS, "2 learning rates differ, of the 4 that a surface needs"),
    (X, X - 0.001 * Z, ERRORS, "changed together, .* in which one changes and the other does not"),
    (X[:12], X[:12], ERRORS[:12], "changed together, .* in which one changes"),
    (X[:12], 0 * Z[:12], ERRORS[:12], "run 6 more, with other decays"),
]


@pytest.mark.parametrize(("x", "z", "errors", "told"), REFUSED)
def test_a_refusal_says_what_is_missing(x: Array, z: Array, errors: Array, told: str) -> None:
    found = fit_surface(scape(x, z - 9, errors))
    assert found.exponent.value is None
    assert math.isnan(found.lr.value)
    assert re.search(told, found.why)
    assert found.exponent.why == found.why


def test_a_basin_too_flat_for_s_still_has_a_setting_to_recommend() -> None:
    found = fit_surface(scape(X, Z - 9, NOISE))
    assert found.exponent.value is None
    assert found.exponent.why == found.why
    assert "the surface bends with λ by no more than it misses the runs" in found.why
    assert "locate" not in found.why  # the best setting is located
    assert found.lr.low < found.lr.value < found.lr.high


@pytest.mark.parametrize(
    ("centre", "told", "known"),
    [
        ((0.0, 5.0), "lowest beyond the highest decay that was run. Add runs there.", False),
        ((0.0, -5.0), "lowest beyond the lowest decay that was run. Add runs there.", False),
        ((6.0, 0.0), "lowest beyond the highest learning rate that was run. Add runs there.", True),
    ],
)
def test_an_optimum_beyond_all_runs_is_not_extrapolated(
    centre: tuple[float, float], told: str, known: bool
) -> None:
    x, z = plane(100)
    errors = 0.3 + 0.006 * (x - centre[0]) ** 2 + 0.0075 * (z - centre[1]) ** 2
    errors = errors + np.random.default_rng(0).normal(0, 1e-4, 100)
    found = fit_surface(scape(x, z - 9, errors))
    assert found.why.endswith(told)
    assert math.isnan(found.lr.value)
    assert math.isnan(found.decay.value)
    assert (found.exponent.value is not None) == known


def test_the_coupling_of_a_search_is_its_surfaces() -> None:
    landscape = search(Truth(s=0.5), np.random.default_rng(0), noise=0.004)
    found, measured = fit_surface(landscape), coupling(landscape)
    assert landscape.scattered
    assert measured.exponent == found.exponent
    assert (measured.line, measured.ridge) == (found.line, ())
    torch = coupling(landscape, convention="torch")
    assert measured.exponent.value is not None
    assert torch.exponent.value == measured.exponent.value + 1
    assert torch.exponent.low == measured.exponent.low + 1
    assert torch.line is not None
    assert measured.line is not None
    assert torch.line.slope == measured.line.slope - 1


def test_what_is_reported_is_of_the_test_set_and_what_is_chosen_of_validation() -> None:
    x, z = plane()
    errors = 0.3 + 0.006 * x**2 + 0.0075 * z**2
    [landscape] = landscapes(
        Point(
            lr=float(2.0**a),
            decay=float(2.0 ** (b - 9)),
            way="weight_decay",
            tested=float(error + 0.1 + 0.01 * b),
            chosen=float(error),
            chosen_on="validation",
        )
        for a, b, error in zip(x, z, errors, strict=True)
    )
    found = fit_surface(landscape)
    assert math.log2(found.decay.value) == pytest.approx(-9, abs=1e-6)
    assert found.error.value == pytest.approx(0.4, abs=1e-6)


def test_copies_of_a_setting_make_nothing_more_certain() -> None:
    random = np.random.default_rng(0)
    x, z, noise = random.normal(0, 1, (3, 30))
    terms, group = terms_of(powers(2), x, z), np.arange(30)
    once = fitted(terms, noise, group, degree=2)
    thrice = fitted(np.tile(terms, (3, 1)), np.tile(noise, 3), np.tile(group, 3), degree=2)
    assert once is not None
    assert thrice is not None
    assert np.allclose(thrice.covariance, once.covariance)
    assert thrice.freedom == once.freedom


def test_the_truth_is_where_the_search_says() -> None:
    landscape = search(QUADRATIC, np.random.default_rng(2), noise=1e-5)
    found = fit_surface(landscape)
    assert math.log2(found.lr.value) == pytest.approx(RATE, abs=0.01)
    assert math.log2(found.decay.value) == pytest.approx(DECAY, abs=0.01)
