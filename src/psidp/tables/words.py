"""Words: what plans and answers of tables tell their readers. Sentences are made here, and read by no program."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from psidp.guarantee import Guarantee
from psidp.ledger.entry import digest
from psidp.maths.sensitivity import clipped_vector
from psidp.tables.ask import Ask
from psidp.tables.choices.bounds import BOUNDS_SHARE, UNSEEN, Bounds
from psidp.tables.choices.unit_sizes import UnitNorms, largest_contribution
from psidp.tables.conditions import readings_words, unread
from psidp.tables.estimate import NOISE, RANK, Estimate
from psidp.tables.flags import CLIPPING
from psidp.tables.notes import Note
from psidp.tables.question import AUTO_SHARE, Drawn, Priced
from psidp.tables.strategies.strategy import Noisy

__all__ = [
    "FLAGS", "answer_notes", "asked_note", "clipping_words", "contribution_note", "flag_notes", "full_words",
    "groups_words", "plan_notes", "question_in_full", "question_notes",
    "read_as_numbers",
]  # fmt: skip

FLAGS = {
    CLIPPING: "what clipping took may move this number by more than its interval says",
    NOISE: "the count behind this number cannot be told from zero, or noise leaves half of its range open",
    RANK: "noise could have put another group in this one's place among the largest",
}

HARDLY_PRIVATE = 10.0
"""psi from which on plans and answers warn: a guess at somebody's membership then fails once in a million."""

MOST_NAMED = 6
"""Groups that a note names."""

SHOWN = 4
"""Groups that a plan names, so that a key with a blank too many is seen before it is paid for."""

RANGE = re.compile(r"(\d{1,9})\s*[-\u2013]\s*(\d{1,9})")
"""A group that looks like a range of numbers, such as 1-12."""

LONGEST, MOST, ROOM = 1_500, 20, 800
"""Letters of a question for an approval; values that it names; letters of the groups that it names."""

PLAIN = re.compile(r"[\w.-]*[^\W\d_][\w.-]*")
"""A word that needs no quotes, unless it reads as a number or as nothing."""


def plan_notes(priced: Priced) -> tuple[Note, ...]:
    """What a reader of a plan has to know about clipping and groups; an answer's reader too."""
    unit, asks = priced.guarantee.unit, priced.asks
    notes: list[Note] = []
    if priced.unit:
        words = (
            f"What one {unit} adds, over all groups, is scaled down by one factor where its L2 norm exceeds its "
            "contribution: one row's worth is what one row adds, and three rows in one group are three. Ratios of it "
            "stay: a mean weighs every clipped unit alike."
        )
        notes.append(Note("scaling", words))
    if priced.unit and any(a.contribution == 1.0 and not a.measure.vector.once for a in asks):
        words = (
            f"With contribution 1, four rows of one {unit} in one group count as one row, and in four groups as half a "
            'row each. Where many have several rows, ask for a larger contribution, or for "auto".'
        )
        notes.append(Note("advice", words))
    notes += _methods(priced)
    if priced.layout.by and not priced.layout.terms:
        words = (
            "The groups are taken as public: as given, and not read from this table. If they were, for example a list "
            "of the values that occur, each shows that somebody has it."
        )
        notes.append(Note("public", words))
    return question_notes(priced, notes)


def question_notes(priced: Priced, own: Sequence[Note]) -> tuple[Note, ...]:
    """What a reader of any plan or answer has to know, with what its layout adds."""
    unit, readings = priced.guarantee.unit, priced.question.readings
    notes = [Note("price", priced.note)] if priced.note else []
    notes += read_as_numbers(priced)
    notes += [Note("readings", readings_words(readings))] if readings else []
    if priced.unit:  # how many rows have no unit is not for free
        missing = " or ".join(map(repr, priced.unit))
        words = f"Rows whose {missing} is missing belong to nobody and are left out of every number."
        notes.append(Note("nobody", words))
    notes += own
    for ask in priced.asks:
        notes += ask.measure.remarks(unit if priced.unit else "")
    if priced.adjacency == "replace-one":
        words = f"Under replace-one one {unit} can move the totals by up to twice its bound; noise is larger for it."
        notes.append(Note("adjacency", words))
    if priced.guarantee.psi > HARDLY_PRIVATE:
        words = (
            f"Warning: psi = {priced.guarantee.psi:.6g} is hardly any privacy. An attacker who guesses whether one "
            f"{unit} is in the data can be right nearly always; 0.1 to 2 is typical."
        )
        notes.append(Note("hardly private", words))
    return tuple({note.text: note for note in notes}.values())


def answer_notes(drawn: Drawn, rows: Sequence[tuple[Any, Estimate]]) -> tuple[Note, ...]:
    """Everything that the reader of an answer is told."""
    priced, estimates = drawn.priced, [e for _, e in rows]
    notes = [asked_note(priced)]
    notes += [Note("chosen bounds", _chosen(ask, priced.found.bounds[ask.name])) for ask in priced.asks
              if ask.name in priced.found.bounds]  # fmt: skip
    clipped = ((ask.name, ask.measure.clipped_words()) for ask in priced.asks)
    notes += [Note("given bounds", f"{name}: {words}.") for name, words in clipped if words]
    for ask, noisy in zip(priced.asks if drawn.noisy else (), drawn.noisy, strict=True):
        notes += [_limit(drawn, ask)] if priced.unit else []
        notes += _at_bounds(priced, ask, rows) + _empty(priced, ask, noisy)
    notes += _nothing_read(priced, estimates)
    if priced.layout.terms:
        notes.append(Note("private groups", _private_groups(priced), {"at_most": priced.layout.terms.at_most}))
    if not priced.layout.groups:
        words = "No group came through. More psi, a larger kappa or coarser groups let more through."
        notes.append(Note("no groups", words))
    return (*notes, *flag_notes(estimates), *plan_notes(priced))


def asked_note(priced: Priced) -> Note:
    """The question in short, and the columns of its units: one name, a list, or None where every row is a unit."""
    unit = priced.unit[0] if len(priced.unit) == 1 else list(priced.unit) or None
    return Note("asked", f"Asked: {priced.question.words}.", {"unit_column": unit})


def _methods(priced: Priced) -> list[Note]:
    """How contributions and bounds are chosen, and what clipping takes is measured."""
    asks, chosen = priced.asks, priced.found.chosen
    notes = []
    if any(a.measure.chooses_bounds for a in asks):
        words = (
            f"Bounds and edges are chosen privately from three noisy histograms, with {BOUNDS_SHARE:.0%} of the "
            "measure's psi^2: powers of 2 of both signs first, then where the values lie. They weigh noise against "
            "what they clip, and need not hold every value."
        )
        notes.append(Note("method", words))
    if any(a.contribution == "auto" or a.name in chosen for a in asks):
        words = (
            f"A contribution is chosen privately from 1 to 2^20 rows' worth, with {AUTO_SHARE:.0%} of the measure's "
            "psi^2; that also pays for saying what clipping took."
        )
        notes.append(Note("method", words))
    elif priced.unit and any(priced.sizes_share(a) > 0.0 for a in asks):
        share = priced.question.clipping_share
        notes.append(Note("method", f"{share:.0%} of psi^2 goes into saying what clipping took."))
    elif priced.unit and any(priced.can_clip(a) for a in asks):
        words = "What clipping takes is not measured (clipping_share=0): intervals may miss the truth without a flag."
        notes.append(Note("unmeasured", words))
    return notes


def groups_words(priced: Priced) -> str:
    """How the groups of a plan come about."""
    layout = priced.layout
    if layout.private:
        return f"{_private_groups(priced)} The totals' SQL will name the chosen groups."
    if not layout.by:
        words = "One group: the whole table."
    else:
        groups = [key[0] if len(key) == 1 else key for key in layout.groups]
        some = ", ".join(repr(key) for key in groups[:SHOWN]) + (", ..." if len(groups) > SHOWN else "")
        words = f"{len(groups):,} public groups ({some}); those absent from the data appear with noise alone."
        found = RANGE.fullmatch(str(groups[0])) if len(groups) == 1 else None
        if found is not None:
            first, last = found.groups()
            words += f" Warning: {found[0]!r} is one group; the numbers from {first} to {last} are {first}..{last}."
    if any(ask.measure.bounds == "auto" for ask in priced.asks):
        words += " The SQL is that of the first histograms; what follows will name the chosen bounds."
    return words


def _private_groups(priced: Priced) -> str:
    """How groups are chosen."""
    terms, unit = priced.layout.terms, priced.guarantee.unit
    sigma = Guarantee(priced.share(terms.weight)).sigma(clipped_vector(terms.contribution, priced.adjacency))
    threshold = terms.threshold(sigma, sigma * 2.0**-24)
    return (
        f"Keys are those whose noisy number of {unit}s exceeds {threshold:.4g} (sigma {sigma:.4g}); {unit}s in more "
        f"than {terms.at_most} groups are excluded."
    )


def flag_notes(estimates: Sequence[Estimate]) -> list[Note]:
    """What the flags that occur mean, and how many numbers have them."""
    notes = []
    for flag, meaning in FLAGS.items():
        n = sum(flag in e.flag for e in estimates)
        words = f'Flag "{flag}" ({n} of {len(estimates)} numbers): {meaning}.'
        notes += [Note("flag", words, {"flag": flag, "numbers": n})] if n else []
    return notes


def _chosen(ask: Ask, bounds: Bounds) -> str:
    """The bounds of one measure, and about how much lies outside."""
    paid = f"chosen with {BOUNDS_SHARE:.0%} of its psi^2"
    if not bounds.seen:
        return f"{ask.name}: no value could be told from noise; bounds {list(UNSEEN)} stand for none ({paid})."
    edges = ask.measure.vector.edges
    if edges:
        return f"{ask.name}: {len(edges) - 1} bins from {edges[0]:.6g} to {edges[-1]:.6g}, {paid}."
    outside = f"; about {bounds.outside:.2g} of the rows lie outside" if bounds.outside > 0.001 else ""
    below, above = ask.measure.spread.taken
    taken = ""
    if below + above > 0.0:
        taken = (
            f" They may raise a value by {below:.2g} and lower it by {above:.2g} on average over all groups "
            "(estimated), and each interval reaches that much further; a group with longer tails loses more."
        )
    return f"{ask.name}: bounds [{bounds.lower:.6g}, {bounds.upper:.6g}], {paid}{outside}.{taken}"


def _limit(drawn: Drawn, ask: Ask) -> Note:
    """What one unit adds at most to a measure, and about what that took away; from noisy numbers alone."""
    priced, c = drawn.priced, ask.worth
    unit, norms = priced.guarantee.unit, drawn.norms.get(ask.name)
    can_clip = priced.can_clip(ask) and ask.measure.vector.within is None
    took = clipping_words(norms, c) if can_clip else ""
    if (
        norms is not None
        and ask.name in priced.found.chosen
        and c >= largest_contribution(ask.measure, priced.layout.cells)
    ):
        took += " The choice ended at the largest contribution there is: more may be clipped."
    words, of = ask.measure.most_words(unit, c, ask.name in priced.found.chosen)
    return contribution_note(f"{words} {took}".strip(), ask.name, c, of, norms is not None or not can_clip)


def _at_bounds(priced: Priced, ask: Ask, rows: Sequence[tuple[Any, Estimate]]) -> list[Note]:
    """The groups in which noise drove a number to one of its bounds; from noisy numbers alone."""
    at = [key for key, e in rows if e.statistic == ask.name and ask.measure.at_bound(e)]
    if not at:
        return []
    named = ", ".join(" / ".join("NULL" if k is None else str(k) for k in key) for key in at[:MOST_NAMED])
    more = ", ..." if len(at) > MOST_NAMED else ""
    where = f" in {len(at):,} of {len(priced.layout.groups):,} groups ({named}{more})" if priced.layout.by else ""
    words = f"{ask.name}: the value lies at one of its bounds{where}, and says little: go by its interval."
    return [Note("at bounds", words)]


def _empty(priced: Priced, ask: Ask, noisy: Noisy) -> list[Note]:
    """A measure of a column without a type that seems to hold no number at all."""
    untyped = [name for name in ask.measure.columns if name in priced.question.curator.source.untyped]
    if not untyped or not priced.layout.groups:
        return []
    readings = [reading for _, reading in priced.layout.rows()]
    if not ask.measure.seems_empty(noisy.cells(readings, priced.question.confidence)):
        return []
    words = (
        f"{ask.name}: over all groups the number of values cannot be told from zero. Perhaps {untyped[0]!r} holds no "
        "numbers, or numbers that are written in another way."
    )
    return [Note("no values", words)]


def contribution_note(words: str, statistic: str, at_most: float, of: str, measured: bool) -> Note:
    """The note on what one unit adds at most: to which statistic ("" for all), how much, and of what.

    of: "rows" for the L2 norm over all groups in rows' worth, "values" for different values, "cell" for rows in one
    cell of a cube, "each" for rows of a cube that count less, all alike, where there are more. measured: whether
    intervals hold what clipping may have taken.
    """
    values = {"statistic": statistic, "at_most": at_most, "of": of, "measured": measured}
    return Note("contribution", words, values)


def clipping_words(norms: UnitNorms | None, contribution: float) -> str:
    """About how many units have more than this, and how much of the total that is; from noisy numbers."""
    if norms is None:
        return "What clipping took was not measured."
    lost, _ = norms.lost(contribution)
    if not lost >= 0.0:
        return "What clipping took could not be measured: at this psi noise hides everybody."
    most = _percent(norms.at_most(contribution)[0])
    if not lost > 0.0:
        return f"Nobody was seen to have more, but behind the noise clipping may have taken up to {most} of the total."
    units = _without_noise(norms.units, norms.sigma)
    clipped = min(_without_noise(*norms.clipped(contribution)), units)  # noise can make them look more than all
    return (
        f"About {clipped:,} of {units:,} units had more. Of the total that they would add without a bound, clipping "
        f"took about {_percent(lost)}, and up to {most} (estimated)."
    )


def _percent(share: float) -> str:
    """A share in percent, with two digits where it is small."""
    return f"{share:.0%}" if share >= 0.0995 else f"{100.0 * share:.2g}%"


def _without_noise(n: float, error: float) -> int:
    """A noisy number of units without the digits that noise has made."""
    step: int = 10 ** max(0, len(str(int(error))) - 1)
    return max(0, round(n / step) * step)


def read_as_numbers(priced: Priced) -> list[Note]:
    """Which columns without a type are read as numbers; from the question alone."""
    untyped = priced.question.curator.source.untyped
    names = dict.fromkeys(name for ask in priced.asks for name in ask.measure.columns if name in untyped)
    notes = []
    for name in names:
        words = f"{name!r} has no type of its own and is read as numbers; values that cannot be parsed are missing."
        notes.append(Note("read as numbers", words))
        notes.append(
            Note("advice", f"Declare the type of {name!r}, with types= or --type {name}:float64, if you know it.")
        )
    return notes


def _nothing_read(priced: Priced, estimates: Sequence[Estimate]) -> list[Note]:
    """Which columns of conditions and groups may hold nothing that could be parsed, where all numbers are noise."""
    readings = priced.question.readings
    counted = {ask.name for ask in priced.asks if not ask.measure.shows_noise}  # sums have no such flag
    flagged = [e for e in estimates if e.statistic not in counted]
    noise = all(NOISE in e.flag for e in flagged) and bool(flagged or not estimates)
    words = unread(readings) if readings and noise else ""
    return [Note("unread", words)] if words else []


def full_words(priced: Priced) -> str:
    """The question of a table in full, for an approval."""
    layout, unit = priced.layout, priced.guarantee.unit
    defined = dict(priced.question.derived)
    by = f"; by {', '.join(defined.get(name, name) for name in layout.by)}" if layout.by else ""
    if layout.terms:
        t = layout.terms
        by += f", groups chosen (kappa {t.kappa:g}, each {unit} in at most {t.at_most:,})"
    elif layout.by:
        named, length = [], 0
        for key in layout.groups:
            named.append("/".join(map(_shown, key)))
            length += len(named[-1]) + 2
            if length > ROOM:
                break
        more = f", ... ({len(layout.groups):,} in all)" if len(named) < len(layout.groups) else ""
        by += f", {len(layout.groups):,} groups: {', '.join(named)}{more}"
    return question_in_full(priced, by)


def question_in_full(priced: Priced, layout: str) -> str:
    """What is asked of which table, in words, and a digest of all of it.

    The words are made from the question. They go into the spend's event with a digest of everything that the question
    is, so that an approval of these words is an approval of this question and no other. The condition, in the asker's
    own words, stands last: it cannot pass for the place.
    """
    asks = "; ".join(ask.measure.words(_shown(ask.contribution)) for ask in priced.asks)
    where, derived = priced.question.where, priced.question.derived
    layout += f"; with {', '.join(text for _, text in derived)}" if derived else ""
    words = f"{asks}{layout}; of {priced.source.place or 'a table in memory'}" + (
        f"; where {where.text}" if where else ""
    )
    if not len(words) <= LONGEST:
        words = f"{words[:LONGEST]}... (cut: it has {len(words):,} letters)"
    return f"{words} [sha256 {digest(priced.request)}]"


def _shown(value: Any) -> str:
    """A value, or the first ones of many; text in quotes unless it is a plain word."""
    if isinstance(value, list | tuple):
        more = f", ... ({len(value):,} in all)" if len(value) > MOST else ""
        return ", ".join(map(_shown, value[:MOST])) + more
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and not _reads_otherwise(value) else repr(value)
    return f"{value:g}" if isinstance(value, float) else value.isoformat() if isinstance(value, date) else str(value)


def _reads_otherwise(word: str) -> bool:
    """Whether a word reads as a number, or as nothing, where it stands without quotes."""
    try:
        float(word)
    except ValueError:
        return word in ("None", "True", "False")
    return True
