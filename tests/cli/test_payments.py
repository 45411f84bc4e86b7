"""A budget pays only for an answer that is stored and printed: every pair of measure, groups, output and the rest."""

from itertools import combinations, product

from fuzz.payments import FACTORS, pay


def pairwise(factors):
    """Rows in which every two choices of different factors occur together; each takes the most of what is left."""
    names = sorted(factors, key=lambda name: -len(factors[name]))
    left = {pair for a, b in combinations(names, 2) for pair in product(_of(factors, a), _of(factors, b))}
    while left:
        row = dict(min(left))
        for name in names:
            if name not in row:
                row[name] = max(factors[name], key=lambda choice: len(left & _pairs(names, {**row, name: choice})))
        left -= _pairs(names, row)
        yield {name: row[name] for name in factors}


def _of(factors, name):
    return [(name, choice) for choice in factors[name]]


def _pairs(names, row):
    """The pairs of choices in a row."""
    return set(combinations([(name, row[name]) for name in names if name in row], 2))


def test_a_budget_pays_only_for_an_answer_that_is_stored_and_printed():
    rows = list(pairwise(FACTORS))
    answered = sum(map(pay, rows))
    assert answered > len(rows) / 4, f"only {answered} of {len(rows)} were answered"
