"""Calendar: the periods of a stream as dates. Days, weeks that begin on Monday, months, quarters, years; all in UTC."""

import datetime
from dataclasses import dataclass
from typing import Any, Literal, get_args

from psidp.curator.row_sql import ibis_library, stairs
from psidp.symbols import whole

__all__ = ["Calendar", "Every", "as_date"]

Every = Literal["day", "week", "month", "quarter", "year"]
EVERY: tuple[str, ...] = get_args(Every)
MONTHS = {"month": 1, "quarter": 3, "year": 12}
DAYS = {"day": 1, "week": 7}
DAY = 86_400_000_000
"""Microseconds."""
EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Calendar:
    """So many periods of one kind from a first day on.

    Examples:
        >>> calendar = Calendar("week", datetime.date(2026, 1, 5), 52)
        >>> calendar.begin(2).isoformat(), calendar.over(datetime.datetime(2026, 1, 20, tzinfo=datetime.UTC))
        ('2026-01-12', 2)
        >>> Calendar("day", datetime.date(2026, 1, 20), 60).bucket_lengths("month")
        (12, 28, 20)
    """

    every: Every
    since: datetime.date
    periods: int

    def __post_init__(self) -> None:
        if self.every not in EVERY:
            raise ValueError(f"every (length of a period) must be one of {', '.join(EVERY)}, got every={self.every!r}.")
        whole("periods", self.periods)
        first = _begun(self.every, self.since)
        if first != self.since:
            raise ValueError(
                f"since (first day of the first {self.every}) must be a day on which a {self.every} begins, got "
                f"since={self.since}. The {self.every} of that day begins on {first}."
            )
        if not self.begin(self.periods + 2) < datetime.date.max:
            raise ValueError(f"periods must end before the year 10000, got periods={self.periods}.")

    def begin(self, period: int) -> datetime.date:
        """The first day of a period, counted from 1; that of the one after the last is the end of all."""
        return _later(self.every, self.since, period - 1)

    def period(self, day: datetime.date) -> int:
        """The period that a day lies in; refused where it lies in none."""
        count = _distance(self.every, self.since, _begun(self.every, day)) + 1
        if not 1 <= count <= self.periods:
            last = self.begin(self.periods + 1) - datetime.timedelta(days=1)
            raise ValueError(f"the date must be in the stream, from {self.since} to {last}, got {day}.")
        return count

    def over(self, now: datetime.datetime) -> int:
        """How many periods are over."""
        day = now.astimezone(datetime.UTC).date()
        return max(0, min(self.periods, _distance(self.every, self.since, _begun(self.every, day))))

    def bucket_lengths(self, each: Every) -> tuple[int, ...]:
        """How many periods begin in each calendar bucket; the first and the last may be cut short."""
        if each not in EVERY or not EVERY.index(each) > EVERY.index(self.every):
            longer = EVERY[EVERY.index(self.every) + 1 :]
            raise ValueError(
                f"each (buckets of which a unit counts once) must be one of {', '.join(longer) or 'none here'} where "
                f"periods are a {self.every}, got each={each!r}."
            )
        lengths: dict[datetime.date, int] = {}
        for number in range(1, self.periods + 1):
            bucket = _begun(each, self.begin(number))
            lengths[bucket] = lengths.get(bucket, 0) + 1
        return tuple(lengths.values())

    def numbered(self, rows: Any, column: str, first: int, last: int, name: str) -> Any:
        """The rows whose column lies in periods first to last, with the number of their period.

        By comparisons alone. DuckDB, whose count of microseconds is exact and the same in every zone, divides it where
        periods are days or weeks: comparing with each first day would take longer than all the rest.
        """
        kind = rows[column].type()
        edges = [_literal(self.begin(number), kind) for number in range(first, last + 2)]
        inside = rows.filter((rows[column] >= edges[0]) & (rows[column] < edges[-1]))
        if rows.get_backend().name == "duckdb" and self.every in DAYS and self.since >= EPOCH:
            number = self._divided(inside[column])
        else:
            number = stairs(inside[column], edges[1:-1], range(first, last + 1))
        return inside.mutate(**{name: number.cast("int16" if last < 1 << 15 else "int32")})

    def _divided(self, column: Any) -> Any:
        """The number of the period of an instant at or after the first."""
        ibis, begin = ibis_library(), (self.since - EPOCH).days * DAY
        instants = _builtin("epoch_us", column.type())(column) - ibis.literal(begin, "int64")
        length = ibis.literal(DAYS[self.every] * DAY, "int64")
        return _builtin("divide", "int64", "int64")(instants, length) + ibis.literal(1, "int64")


def as_date(name: str, value: Any) -> datetime.date:
    """A date, or text such as 2026-01-05."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a date such as 2026-01-05, got {name}={value!r}.") from None


def _begun(every: str, day: datetime.date) -> datetime.date:
    """The first day of the period that a day lies in."""
    if every == "day":
        return day
    if every == "week":
        return datetime.date.fromordinal(day.toordinal() - day.weekday())
    length = MONTHS[every]
    return datetime.date(day.year, (day.month - 1) // length * length + 1, 1)


def _later(every: str, first: datetime.date, number: int) -> datetime.date:
    """The first day of the period so many after one."""
    if every in DAYS:
        return datetime.date.fromordinal(min(first.toordinal() + DAYS[every] * number, datetime.date.max.toordinal()))
    year, month = divmod(first.year * 12 + first.month - 1 + MONTHS[every] * number, 12)
    return datetime.date(year, month + 1, 1) if year <= datetime.MAXYEAR else datetime.date.max


def _distance(every: str, first: datetime.date, last: datetime.date) -> int:
    """How many periods lie between two first days."""
    if every in DAYS:
        return (last - first).days // DAYS[every]
    return ((last.year - first.year) * 12 + last.month - first.month) // MONTHS[every]


def _literal(day: datetime.date, kind: Any) -> Any:
    """The first moment of a day, in UTC, in the column's own type."""
    text = day.isoformat()
    if kind.is_timestamp():
        text += " 00:00:00" + ("+00:00" if kind.timezone is not None else "")
    return ibis_library().literal(text).cast(kind)


def _builtin(name: str, *kinds: Any) -> Any:
    """A function of DuckDB's with whole results: epoch_us, microseconds since 1970 in UTC; divide, rounding to 0."""
    made = ibis_library().udf.scalar.builtin(name=name, signature=(kinds, "int64"))
    return made((lambda x: x) if len(kinds) == 1 else (lambda x, y: x))
