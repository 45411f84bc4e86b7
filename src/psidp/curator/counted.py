"""Counted: what the numbers of a stream count and what they leave out, in words. From parameters alone."""

from psidp.curator.ask import Aggregate
from psidp.curator.calendar import Calendar
from psidp.curator.query import Query, can_clip
from psidp.curator.unit import Unit, columns_of
from psidp.strategies import Participation

__all__ = ["CAPPED", "can_cap", "counted_words"]

CAPPED = "capped"
"""Flag of a number that counts only what the cap lets through, so that its interval need not hold the table's own."""

ONE_ROW = (
    "With contribution 1, four rows of one {unit} in one group count as one row, and in four groups as half a row "
    "each. Where many have several rows in a {every}, ask for a larger contribution."
)


def can_cap(unit: Unit, groups: int, promise: Participation, calendar: Calendar, aggregate: Aggregate) -> bool:
    """Whether the cap can leave out something of an aggregate: periods of a unit, or what it has in one of them."""
    return unit is not None and (_leaves_out(promise, calendar.periods) or can_clip(unit, groups, aggregate))


def counted_words(query: Query, promise: Participation, calendar: Calendar, *, sealed: bool) -> str:
    """What counts, what does not, and that nobody measures how much that is."""
    if query.unit is None:
        return "Every row counts, in one period."
    unit, every, clipped = query.guarantee.unit, calendar.every, [a for a in query.asks if query.can_clip(a)]
    missing, left_out = " or ".join(map(repr, columns_of(query.unit))), _leaves_out(promise, calendar.periods)
    where = _periods(promise, every, sealed) if left_out else f"every {every}"
    worth = f", with at most {_worth(clipped)} in each" if clipped else ""
    if not (left_out or clipped):
        return f"One {unit} counts in {where}. Rows without {missing} do not count."
    said = [f"one {unit} counts in {where}{worth}."]
    said.append(f"What it has beyond that, and rows without {missing}, are in no number.")
    said.append("How much this takes away is not measured, and no interval holds it.")
    if promise.at_most is not None and promise.at_most < calendar.periods:
        all_of_them = "its one" if promise.at_most == 1 else f"all {promise.at_most}"
        said.append(
            f"Whoever has had {all_of_them} counts no more: numbers fall from {every} to {every} where the same "
            "ones come again, even if the table's do not."
        )
    if any(a.contribution == 1.0 and a.kind != "units" for a in clipped):
        said.append(ONE_ROW.format(unit=unit, every=every))
    return " ".join(["Numbers are of what counts, not of all rows:", *said])


def _leaves_out(promise: Participation, periods: int) -> bool:
    """Whether a unit that is there in every period does not count in all of them."""
    few = promise.at_most is not None and promise.at_most < periods
    return few or promise.apart > 1 or promise.each not in (None, 1)


def _periods(promise: Participation, every: str, sealed: bool) -> str:
    """The periods in which a unit counts."""
    n, rules = promise.at_most, []
    if promise.each is not None:
        of = (
            f"each {promise.each} {every}s" if isinstance(promise.each, int) else f"each of {len(promise.each)} buckets"
        )
        rules.append(f"its first {every} of {of}")
    if promise.apart > 1:
        away = f"{promise.apart - 1} {every}{'s' if promise.apart > 2 else ''}"
        rules.append(f"{every}s before which it {'did not count' if sealed else 'had no row'} for {away}")
    if not rules:
        return f"the first {f'{n} {every}s' if n != 1 else every} in which it has a row"
    return " that are ".join(rules) + (f", {n} at most" if n is not None else "")


def _worth(clipped: list[Aggregate]) -> str:
    """What a unit may add to a period: one contribution for all, or one for each aggregate."""
    worths = {float(a.contribution or 1.0) for a in clipped}
    if len(worths) > 1:
        each = ", ".join(f"{float(a.contribution or 1.0):g} of {a.name}" for a in clipped)
        return f"these rows' worth (L2 norm, over all groups: {each})"
    rows = "one row's" if worths == {1.0} else f"{worths.pop():g} rows'"
    return f"{rows} worth (L2 norm, over all groups)"
