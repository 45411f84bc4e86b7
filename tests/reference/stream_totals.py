"""What a stream's query must compute, in plain Python: which periods of a unit count, and their clipped totals."""

from datetime import date, timedelta

from reference.bounded_totals import totals


def period_of(row, since, days):
    """The number of the period of arrival, or None; periods of so many days each."""
    if row["a"] is None:
        return None
    day = row["a"].date() if hasattr(row["a"], "date") else row["a"]
    return (day - since).days // days + 1 if day >= since else None


def counted(places, since, days, at_most=None, apart=1, each=None, newest_first=False):
    """Those of a unit's periods that count."""
    places = sorted(set(places), reverse=newest_first)
    kept = [p for i, p in enumerate(places) if i == 0 or abs(p - places[i - 1]) >= apart]
    if each is not None:
        buckets = {}
        for p in kept:
            buckets.setdefault(bucket(p, since, days, each), p)
        kept = [p for p in kept if p in buckets.values()]
    return set(kept[:at_most])


def bucket(period, since, days, each):
    """The month that a period begins in, or the number of its bucket of so many periods."""
    first = since + timedelta(days=days * (period - 1))
    return (first.year, first.month) if each == "month" else (period - 1) // each


def stream_totals(rows, aggregate, lattice, *, since, days, last, groups, **cap):
    """{(group, period): [total]} of the rows that arrived in periods 1 to last."""
    rows = [row | {"p": period_of(row, since, days)} for row in rows if (row["g"],) in groups]
    rows = [row for row in rows if row["p"] is not None and row["p"] <= last and row["u"] is not None]
    found = {}
    for unit in {row["u"] for row in rows}:
        own = [row for row in rows if row["u"] == unit]
        for period in counted([row["p"] for row in own], since, days, **cap):
            there = [row for row in own if row["p"] == period]
            for group, total in totals(there, "u", ("g",), aggregate, lattice).items():
                before = found.get((group, period), [0] * len(total))
                found[group, period] = [a + b for a, b in zip(before, total, strict=True)]
    return {place: total for place, total in found.items() if any(total)}


START = date(2026, 1, 19)
