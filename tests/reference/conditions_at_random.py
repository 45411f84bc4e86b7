"""Conditions at random as text, with constants as odd as they come: those that fail on some row, and what they mean."""

import datetime
import math
import operator
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from psidp.errors import EngineError
from reference.typed_columns import LITERALS

CONSTANTS = [*LITERALS, 2**127, -(2**127), 10**38, Decimal("1e400"), "it''s", "inf", "null", "1;2"]
"""Constants; texts stand in quotes three times in four."""

WRITTEN = [
    *(f"{{a}} {sign} {{b}}" for sign in ("=", "!=", "<", "<=", ">", ">=") for _ in range(3)), "{b} < {a}",
    "{a} in ({b}, {c})", "{a} not in ({b})", "{a} between {b} and {c}", "{a} not between {b} and {c}", "{a} is null",
    "not ({a} = {b} or {a} is not null)", "{a} like {b}", "{a} not like '%{t}_\\\\%'", "left({a}, 3) = {b}",
    "cut({a}, {b}) is not null", "cut({a}, {b}, {c}) = 'x'", "case when {a} < {b} then 'x' else 'y' end = 'x'",
    "case when {a} = {b} then 1.5 when {a} > {c} then -2 end > 0", "lower({a}) like '%{t}%'", "length({a}) >= {b}",
    "upper({a}) >= {b}", "trim({a}) = {b}", "isnan({a})", "{a}", "not {a}", "{a} in ({b}, {o})",
    *(f"{part}({{a}}) = {{b}}" for part in
      ("year", "quarter", "month", "week", "day", "isoweekday", "hour", "minute", "date")),
    *(f"{part}({{a}}) in (1, 2) and {{a}} <= {{b}}" for part in ("year", "month", "isoweekday", "hour", "date")),
    *(f"{{a}} {sign} {{o}}" for sign in ("=", "!=", "<", "<=", ">", ">=")), "{a} < {o} or {o} is null",
    "{a} and not {o}", "date({a}) = date({o})", "month({a}) < {o}", "({a} = {b}) = ({o} > {c})",
    "{a} between {o} and {b}", "cast({a} as tinyint) = {b}", "{a} + {b} > {c}", "abs({a}) > {b}",
]  # fmt: skip
"""Conditions as text: a and o are columns, b and c constants, t a text within quotes."""


def written(dice, columns):
    """A random condition, on one column, with constants, with another column."""
    literals = [dice.choice(CONSTANTS) for _ in range(2)]
    b, c = (f"'{value}'" if isinstance(value, str) and dice.randrange(4) else f"{value}" for value in literals)
    a, o, text = dice.choice(columns), dice.choice(columns), dice.choice(["a", "%", "x", "_", "\\\\", "\u00df"])
    return dice.choice(WRITTEN).format(a=a, b=b, c=c, o=o, t=text)


def failing(bare, full, conditions):
    """Those of the conditions, SQL by text, that fail on the full source or on the bare one; a batch at once, and its
    halves where it fails."""
    found, waiting = {}, [list(conditions.items())]
    while waiting:
        batch = waiting.pop()
        columns = ", ".join(f"{sql} AS b{i}" for i, (_, sql) in enumerate(batch))
        failure = ""
        for name, source in (("full", full), ("bare", bare)):
            try:
                source.engine.rows(f"SELECT {columns} FROM {source.text} AS source")
            except EngineError as error:
                failure = f"{name}: {error}"
        if failure and len(batch) == 1:
            found[batch[0][0]] = failure
        elif failure:
            half = len(batch) // 2
            waiting += [batch[:half], batch[half:]]
    return found


NOON = datetime.datetime(2026, 1, 1, 12)
NUMBERS = [-(2**62), 2**62, -1, 0, 1, 17, None]
FRACTIONS = [math.nan, math.inf, -math.inf, 5e-324, -5e-324, 0.1, -0.0, 1e308, 17.0, float(2**62), None]
PRICES = [*map(Decimal, ("0", "-0.01", "0.1", "99999999.99", "-99999999.99")), None]
DAYS = [datetime.date.min, datetime.date.max, datetime.date(2026, 1, 1), datetime.date(1969, 12, 31), None]
MOMENTS = [datetime.datetime.min, datetime.datetime.max, NOON, NOON.replace(microsecond=1), None]
WORDS = ["", "a", "A", " a", "a%b", "a_b", "\\", "'", "ß", "\n", "NaN", "1e400", "\U0001f600" * 3, None]
KINDS = [
    (["n", "m"], "bigint", NUMBERS),
    (["x", "y"], "double", FRACTIONS),
    (["price", "cost"], "decimal(10, 2)", PRICES),
    (["day", "until"], "date", DAYS),
    (["at", "later"], "timestamp", MOMENTS),
    (["word", "other"], "varchar", WORDS),
]
SIGNS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
ODD_COLUMNS = ", ".join(f'"{name}" {kind}' for names, kind, _ in KINDS for name in names)
"""Columns of DuckDB that odd rows have."""


def odd_rows(dice, count):
    """Rows of values as odd as they come, by column."""
    return [{name: dice.choice(values) for names, _, values in KINDS for name in names} for _ in range(count)]


def spelled(value):
    """A constant as one writes it, and the value that it means in exact arithmetic."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"'{value}'"
    return str(value)


def exact(value):
    return Fraction(value) if isinstance(value, Decimal | int | float) and math.isfinite(value) else value


def unknown(value, *others):
    return value is None or any(other is None for other in others)


ATOM, NOT, AND, OR = range(4)
"""What binds tighter comes first."""


def meant(dice, depth=3):
    """A condition as text, and what it means of a row in Python: True, False or None."""
    text, meaning, _ = _meant(dice, depth)
    return text, meaning


def _meant(dice, depth):
    """The same, and what holds the text together; brackets stand where they have to, and now and then elsewhere."""
    if not (depth and dice.randrange(2)):
        return *_atom(dice), ATOM
    outer = dice.choice((NOT, AND, OR))
    parts = []
    for _ in range(1 if outer == NOT else dice.choice((2, 2, 3))):
        text, meaning, inner = _meant(dice, depth - 1)
        parts.append((f"({text})" if inner > outer or not dice.randrange(5) else text, meaning))
    texts, meanings = zip(*parts, strict=True)
    if outer == NOT:
        return f"not {texts[0]}", lambda row: None if (found := meanings[0](row)) is None else not found, outer
    word, joined = (" and ", both) if outer == AND else (" or ", either)
    return word.join(texts), lambda row: reduce(joined, (meaning(row) for meaning in meanings)), outer


def _atom(dice):
    """A predicate and its meaning."""
    names, _, values = dice.choice(KINDS)
    first, second = dice.choice(names), dice.choice(names)
    constant, high = (dice.choice([v for v in values if v is not None and v == v]) for _ in range(2))
    sign, test = dice.choice(list(SIGNS.items()))

    def compared(a, b, test=test):
        return None if unknown(a, b) else test(exact(a), exact(b))

    shape = dice.randrange(7)
    negated = dice.choice(("", "not "))
    if shape == 0:
        return f"{first} {sign} {spelled(constant)}", lambda row: compared(row[first], constant)
    if shape == 1:
        return f"{spelled(constant)} {sign} {first}", lambda row: compared(constant, row[first])
    if shape == 2:
        return f"{first} {sign} {second}", lambda row: compared(row[first], row[second])
    if shape == 3:
        return f"{first} is {negated}null", lambda row: (row[first] is None) is not bool(negated)
    if shape == 4:
        options = ", ".join(map(spelled, (constant, high)))
        return (
            f"{first} {negated}in ({options})",
            lambda row: (
                None
                if row[first] is None
                else (exact(row[first]) in (exact(constant), exact(high))) is not bool(negated)
            ),
        )
    return (
        f"{first} {negated}between {spelled(constant)} and {spelled(high)}",
        lambda row: (
            None if row[first] is None else (exact(constant) <= exact(row[first]) <= exact(high)) is not bool(negated)
        ),
    )


def both(a, b):
    return False if a is False or b is False else None if a is None or b is None else True


def either(a, b):
    return True if a is True or b is True else None if a is None or b is None else False
