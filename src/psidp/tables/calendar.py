"""Calendar: the periods of a stream as dates. Days, weeks that begin on Monday, months, quarters, years; all in UTC."""

import datetime
from dataclasses import dataclass
from typing import Any, Literal, get_args

from psidp.symbols import whole

__all__ = ["Calendar", "Every", "as_date"]

Every = Literal["day", "week", "month", "quarter", "year"]
EVERY: tuple[str, ...] = get_args(Every)
MONTHS = {"month": 1, "quarter": 3, "year": 12}
DAYS = {"day": 1, "week": 7}


@dataclass(frozen=True, slots=True)
class Calendar:
    """A number of periods of one kind from a first day on.

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

    @property
    def begins(self) -> tuple[datetime.date, ...]:
        """The first day of each period, and of the one after the last."""
        return tuple(map(self.begin, range(1, self.periods + 2)))

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
    """The first day of the period that is a number of periods after one."""
    if every in DAYS:
        return datetime.date.fromordinal(min(first.toordinal() + DAYS[every] * number, datetime.date.max.toordinal()))
    year, month = divmod(first.year * 12 + first.month - 1 + MONTHS[every] * number, 12)
    return datetime.date(year, month + 1, 1) if year <= datetime.MAXYEAR else datetime.date.max


def _distance(every: str, first: datetime.date, last: datetime.date) -> int:
    """How many periods lie between two first days."""
    if every in DAYS:
        return (last - first).days // DAYS[every]
    return ((last.year - first.year) * 12 + last.month - first.month) // MONTHS[every]
