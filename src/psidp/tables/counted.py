"""Words of a stream: what its numbers count and what they leave out. From parameters alone."""

from collections.abc import Sequence

from psidp.strategies import Participation
from psidp.tables.ask import Ask
from psidp.tables.calendar import Calendar

__all__ = ["clipped_asks", "counted_words", "flags_of"]

CAPPED = "capped"
"""Flag of a number that counts only what the cap lets through, so that its interval need not hold the table's own."""


def can_cap(promise: Participation, periods: int) -> bool:
    """Whether a unit that is there in every period does not count in all of them."""
    few = promise.at_most is not None and promise.at_most < periods
    return few or promise.apart > 1 or promise.each not in (None, 1)


def clipped_asks(asks: Sequence[Ask], groups: int) -> list[Ask]:
    """The measures to which a unit can have more to add, in one period, than it may."""
    return [ask for ask in asks if not (ask.measure.vector.once and ask.worth >= groups**0.5)]


def flags_of(asks: Sequence[Ask], groups: int, promise: Participation, periods: int, *, alone: bool) -> dict[str, str]:
    """The flag of each measure: whether the cap can leave something out, which it cannot where every row is a unit
    (`alone`)."""
    clipped = () if alone else clipped_asks(asks, groups)
    capped = not alone and can_cap(promise, periods)
    return {ask.name: CAPPED if capped or ask in clipped else "" for ask in asks}


def counted_words(
    unit: str, columns: Sequence[str], clipped: Sequence[Ask], promise: Participation, calendar: Calendar
) -> str:
    """What counts, what does not, and that nobody measures how much that is.

    Args:
        unit: whose data is protected. columns: those that name units; none where every row is one. clipped: the
        measures to which a unit can have more to add than it may.
    """
    if not columns:
        return "Every row counts, in one period."
    every, missing = calendar.every, " or ".join(map(repr, columns))
    left_out = can_cap(promise, calendar.periods)
    where = _periods(promise, every) if left_out else f"every {every}"
    worth = f", with at most {_worth(clipped)} in each" if clipped else ""
    if not (left_out or clipped):
        return f"One {unit} counts in {where}. Rows without {missing} do not count."
    words = [
        f"Numbers are of what counts, not of all rows: one {unit} counts in {where}{worth}.",
        f"Everything beyond that, and rows without {missing}, are in no number.",
        "How much this takes away is not measured, and no interval holds it.",
    ]
    if promise.at_most is not None and promise.at_most < calendar.periods:
        words.append(
            f"A {unit} that has been counted in {promise.at_most} {every}{'s' * (promise.at_most > 1)} is not counted "
            f"again: numbers fall from {every} to {every} where the same ones come again, even if the table's do not."
        )
    if any(ask.contribution == 1.0 and not ask.measure.vector.once for ask in clipped):
        words.append(
            f"With contribution 1, four rows of one {unit} in one group count as one row, and in four groups as half a "
            f"row each. Where many have several rows in a {every}, ask for a larger contribution."
        )
    return " ".join(words)


def _periods(promise: Participation, every: str) -> str:
    """The periods in which a unit counts."""
    n, rules = promise.at_most, []
    if promise.each is not None:
        of = (
            f"each {promise.each} {every}s" if isinstance(promise.each, int) else f"each of {len(promise.each)} buckets"
        )
        rules.append(f"its first {every} of {of}")
    if promise.apart > 1:
        away = f"{promise.apart - 1} {every}{'s' if promise.apart > 2 else ''}"
        rules.append(f"{every}s before which it had no row for {away}")
    if not rules:
        return f"the first {f'{n} {every}s' if n != 1 else every} in which it has a row"
    return " that are ".join(rules) + (f", {n} at most" if n is not None else "")


def _worth(clipped: Sequence[Ask]) -> str:
    """What a unit may add to a period: one contribution for all, or one for each measure."""
    worths = {ask.worth for ask in clipped}
    if len(worths) > 1:
        each = ", ".join(f"{ask.worth:g} of {ask.name}" for ask in clipped)
        return f"these rows' worth (L2 norm, over all groups: {each})"
    rows = "one row's" if worths == {1.0} else f"{worths.pop():g} rows'"
    return f"{rows} worth (L2 norm, over all groups)"
