"""The card of a stream: what it publishes, how often, for which one psi, and whose promise the cap is."""

from typing import Any, Protocol, runtime_checkable

from numpy import isfinite

from psidp.mechanism.counter import Counter
from psidp.mechanism.stream_plan import StreamPart, StreamPlan
from psidp.present.card.parts import ErrorRange
from psidp.present.card.release_words import noise_alone
from psidp.strategies import Question

__all__ = ["Streaming", "stream_words"]

ALL = "all numbers of all periods together: one psi, paid once, however many of them are looked at"
MOST = 4
"""Questions whose errors a card tells."""
STRATEGY = "Gaussian noise on a linear strategy in whole numbers, {n} periods"


@runtime_checkable
class Streaming(Protocol):
    """A stream of a table, or a counter."""

    name: str

    def plan(self) -> StreamPlan:
        """Its plan; the stored one, once it is open."""

    def open(self, purpose: str = "") -> Any:
        """The stream, paid for."""


def stream_words(stream: Any) -> dict[str, Any]:
    """The fields of a stream's card, in words: title, mechanism, contribution bound, what is covered and what not."""
    plan = stream.plan()
    told = _counter(stream, plan) if isinstance(stream, Counter) else _table(stream, plan)
    asked = [(part, question) for part in plan.parts for question in plan.choice.workload.questions]
    errors = tuple(_error(stream, plan, part, question) for part, question in asked[:MOST])
    return told | {"mechanism": STRATEGY.format(n=plan.periods), "errors": errors}


def _error(stream: Any, plan: StreamPlan, part: StreamPart, question: Question) -> ErrorRange:
    """How far the intervals of one question will reach, from the narrowest period's to the widest."""
    found = plan.deviations(question, part)
    errors = found[isfinite(found)]
    level = stream.confidence if isinstance(stream, Counter) else stream.question.confidence
    least, most = (noise_alone("", float(end), level).below[0] for end in (errors.min(), errors.max()))
    capped = 0 if isinstance(stream, Counter) or not stream.flags[part.statistic] else errors.size
    name = f"{part.statistic}, {question.name}"
    return ErrorRange(name, (least, most), (least, most), level, errors.size, capped)


def _counter(counter: Counter, plan: StreamPlan) -> dict[str, Any]:
    """A counter sees totals alone: what a unit adds to them is the caller's word."""
    promise = f"one {plan.unit} adds at most {counter.bound:,} to a period and is in {plan.choice.participation}"
    return {
        "title": f"{counter.name or 'Counter'}: a total published in each of {plan.periods:,} periods",
        "bound": f"{promise}. This is the promise of whoever counts; nothing here could check it",
        "covered": (ALL,),
        "not_covered": (
            f"one {plan.unit} that is in more periods, or adds more, than was promised",
            "anything else published from the same data",
        ),
    }


def _table(stream: Any, plan: StreamPlan) -> dict[str, Any]:
    """The engine caps what a unit adds."""
    asked, layout = ", ".join(part.statistic for part in plan.parts), stream.layout
    by = f" by {', '.join(layout.by)}" if layout.by else ""
    kept = f"a row counts in the period of its arrival, which {layout.column!r} says"
    changed = f"rows of periods that are over that are changed or partly erased; erasing a whole {plan.unit} is covered"
    return {
        "title": f"{stream.name}: {asked}{by}, every {stream.calendar.every} since {stream.calendar.since}",
        "bound": f"{stream.counted} The engine enforces it: {kept}",
        "covered": (ALL,),
        "not_covered": (changed, "anything else published from the same data"),
    }
