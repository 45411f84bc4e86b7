"""No column makes the choice of bounds fail, and bounds that are chosen hold most of what noise does not hide."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from psidp import Curator, ask
from psidp.tables.choices import bounds as of_bounds
from psidp.tables.question import prepared


def explore(random: Random) -> None:
    """A column of any size, sign and offset, and odd values among it: bounds in order, and near the values."""
    dice = np.random.default_rng(random.getrandbits(64))
    scale, shift = 10.0 ** random.randint(-8, 15), random.choice([0.0, 3.0, 30.0, -200.0])
    rows = random.choice([2000, 5000])
    plain = dice.normal(size=rows) if random.random() < 0.5 else dice.exponential(size=rows)
    values = scale * (plain + shift)
    odd = random.sample([np.nan, np.inf, -np.inf, 5e-324, 1e308], 2)
    table = pa.table({"x": np.concatenate([values, odd])})
    question = Curator(table, None).ask(ask.mean("x", bounds="auto"))
    found = prepared(question.at(1.0))().priced.found.bounds["mean of x"]
    inside = float(np.mean((values >= found.lower) & (values <= found.upper)))
    said = f"{rows} values of {values.mean():.3g} and deviation {values.std():.3g}: {found.lower}, {found.upper}"
    assert found.seen, said
    assert inside > 0.9, said
    assert found.upper - found.lower < 40.0 * values.std(), said


def _first_only(middle: Any) -> tuple[float, ...]:
    """The third histogram on the ends of the second alone."""
    return float(middle.edges[0]), float(middle.edges[-1])


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "no search for the middle": lambda: patch.object(of_bounds, "tail_edges", _first_only),
    "sizes that noise has made": lambda: patch.object(of_bounds, "STEP", 0.0),
}
