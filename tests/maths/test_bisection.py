"""Both ends of a bisection keep what was seen there, whatever the condition does in between."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psidp.maths.bisection import between, bracket, halvings, ratio_of, within


@given(st.floats(0.0, 1.0), st.floats(1e-12, 0.5))
def test_the_ends_stand_on_their_own_sides_of_the_edge(edge, distance):
    low, high = bracket(lambda x: x < edge, -1.0, 2.0, within(distance))
    assert low < edge <= high <= low + distance


@given(st.floats(1e-200, 1.0))
def test_a_geometric_one_is_as_close_where_numbers_are_small(edge):
    low, high = bracket(lambda x: x < edge, 1e-300, 2.0, ratio_of(1.0 + 1e-9), geometric=True)
    assert low < edge <= high <= low * (1.0 + 1e-9)


@given(st.lists(st.booleans(), min_size=1, max_size=50))
def test_a_condition_without_an_edge_is_believed_where_it_was_asked(answers):
    seen, words = {}, iter(answers)

    def holds(x):
        seen[x] = next(words)
        return seen[x]

    low, high = bracket(holds, 0.0, 1.0, halvings(len(answers)))
    assert seen.get(low, low == 0.0)
    assert not seen.get(high, high != 1.0)
    assert next(words, None) is None


def test_no_halving_asks_nothing_and_moves_nothing():
    assert bracket(lambda x: 1 / 0, 3.0, 5.0, halvings(0)) == (3.0, 5.0)
    assert bracket(lambda x: 1 / 0, 3.0, inf, lambda low, high: False) == (3.0, inf)


@pytest.mark.parametrize("edge", [-1, 0, 7, 99])
def test_whole_numbers_end_as_neighbours(edge):
    assert between(lambda n: n <= edge, -1, 100) == (edge, edge + 1)
