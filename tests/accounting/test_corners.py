"""Two hundred random corners against the references of tests/reference/make_corners.py: no false end, no crash."""

import json
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from psidp import Guarantee
from psidp.accounting import DPSGD, PrivacyCurve, account
from psidp.accounting.contours.contour import NotCertified
from psidp.accounting.contours.saddle import saddle_at_epsilon
from psidp.accounting.methods import CONTOURS_AT
from psidp.accounting.pld.loss_grid import Lattice
from psidp.symbols import float_above, float_below

FILE = Path(__file__).parent.parent / "reference" / "corners.jsonl"
CORNERS = [json.loads(line) for line in FILE.read_text().splitlines()]
EXTENDED = np.finfo(np.longdouble).nmant == 63
SLACK, TINY = Fraction(1, 10**12), Fraction(5e-324)
"""What exp of a logarithm of this size may be off by."""


def events_of(corner):
    psi = [Guarantee(corner["psi"], kappa=corner["kappa"])] if corner["psi"] else []
    return [DPSGD(*run) for run in corner["runs"]] + psi


def false_ends(curve: PrivacyCurve, corner) -> tuple[list[str], list[str]]:
    """What the curve says against the reference, and the methods that it took.

    delta at the reference's epsilon; and epsilon at two floats beside delta, one on either side of it.
    """
    low, high = (Fraction(corner["delta"][end]) for end in ("lower", "upper"))
    epsilon, wrong = corner["epsilon"], []
    found = curve.delta(epsilon)
    if Fraction(found.lower) > high or Fraction(found.upper) < low:
        wrong.append(f"delta({epsilon!r}) = {found}, true from {float(low)!r} to {float(high)!r}")
    less, more = curve.epsilon(float_below(low)), curve.epsilon(float_above(high))
    if less.upper < epsilon:
        wrong.append(f"epsilon({float_below(low)!r}) = {less}, true at least {epsilon!r}")
    if more.lower > epsilon:
        wrong.append(f"epsilon({float_above(high)!r}) = {more}, true at most {epsilon!r}")
    return wrong, [found.method, less.method, more.method]


@cache
def judged(index: int) -> tuple[list[str], list[str]]:
    return false_ends(account(events_of(CORNERS[index])), CORNERS[index])


@pytest.mark.parametrize("index", range(len(CORNERS)))
def test_no_end_is_false(index):
    assert judged(index)[0] == []


def test_every_kind_is_there():
    kinds = Counter(corner["kind"] for corner in CORNERS)
    assert len(CORNERS) == 200
    assert min(kinds.values()) >= 20


@pytest.mark.parametrize("method", ["contour", "windowed contour", "extended contour", "lattice"])
def test_every_road_holds_in_twenty_corners_whether_or_not_it_would_be_taken(method):
    """A method that does not lead to the place says nothing there; an upper end needs both directions."""
    sampled, narrow = [c for c in CORNERS if c["runs"] and c["kind"] != "one step"], 0
    for corner in sorted(sampled, key=lambda c: c["epsilon"] % 1e-3):  # in no order
        low, high = (Fraction(corner["delta"][end]) for end in ("lower", "upper"))
        kappa = Fraction(corner["kappa"])
        with np.errstate(all="ignore"):
            both = [on_road(method, steps, corner["epsilon"]) for steps in account(events_of(corner)).above]
        for bounds in filter(None, both):
            lower = Fraction(float(np.exp(bounds[0])))
            assert kappa + (1 - kappa) * lower * (1 - SLACK) <= high, (method, corner)
        if None not in both:
            upper = Fraction(float(np.exp(max(bounds[1] for bounds in both))))
            assert kappa + (1 - kappa) * upper * (1 + SLACK) + TINY >= low, (method, corner)
        narrow += both[0] is not None and both[0][1] - both[0][0] < 0.7
        if narrow == 20:
            return
    assert method == "extended contour"
    assert not EXTENDED


def on_road(method, steps, epsilon) -> tuple[float, float] | None:
    """Bounds of log delta on one method, or None where it does not lead."""
    saddle = saddle_at_epsilon(steps, epsilon)
    guess = min(saddle.log_delta, 0.0) if saddle.log_delta > -745.0 else -745.0
    try:
        if method == "lattice":
            found = Lattice(steps, epsilon, guess, 1 << 13)
        else:
            attempt, *rest = next(values for name, *values in CONTOURS_AT if name == method)
            found = attempt(steps, saddle, guess, *rest)
    except NotCertified:
        return None
    low, high = found.log_delta(np.array([epsilon]))
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("shift", [1e-7, -1e-7])
def test_a_moved_reference_is_found_out(shift):
    """The reference is sharp: a delta that is wrong by 1e-7 of itself is seen in every tight corner."""
    near = 1 + Fraction(1, 10**9)
    tight = [c for c in CORNERS if Fraction(c["delta"]["upper"]) <= Fraction(c["delta"]["lower"]) * near]
    assert len(tight) >= 100
    for corner in tight[::40]:
        ends = {end: str(Fraction(text) * (1 + Fraction(shift))) for end, text in corner["delta"].items()}
        moved = corner | {"delta": ends}
        truth = account(events_of(corner)).delta(corner["epsilon"])
        if truth.width <= 1e-8 * truth.upper:
            assert false_ends(account(events_of(corner)), moved)[0] != []
