"""Notes: what a reader of a plan or an answer is told about clipping, groups and noise. Each has a kind and values."""

from collections.abc import Sequence
from math import sqrt

from psidp.curator.answer import Answer, Note
from psidp.curator.ask import Aggregate
from psidp.curator.bounds import BOUNDS_SHARE, UNSEEN, Bounds
from psidp.curator.contribution import UnitNorms, largest_contribution
from psidp.curator.estimate import CLIPPING, NOISE, RANK, Estimate, count_flag
from psidp.curator.execute import Drawn, Part
from psidp.curator.groups import Key
from psidp.curator.query import AUTO_SHARE, Query
from psidp.curator.readings import readings_words, unread
from psidp.curator.unit import Unit, columns_of
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import clipped_vector

__all__ = [
    "FLAGS",
    "answer_of",
    "chosen_bounds",
    "clipping_words",
    "contribution_note",
    "flag_notes",
    "hardly_private",
    "no_values",
    "nobodys",
    "notes_on",
    "private_groups",
    "question_words",
    "read_as_numbers",
    "what_clipping_took",
]

NO_VALUES = (
    "{a.name}: over all groups the number of values cannot be told from zero. Perhaps {a.column!r} holds no numbers, "
    "or numbers that are written in another way."
)

MOST_NAMED = 6
"""Groups that a note names."""

HARDLY_PRIVATE = 10.0
"""psi from which on plans and answers warn: a guess at somebody's membership then fails once in a million."""

FLAGS = {
    CLIPPING: "what clipping took may move this number by more than its interval says",
    NOISE: "the count behind this number cannot be told from zero, or noise leaves half of its range open",
    RANK: "noise could have put another group in this one's place among the largest",
}


def answer_of(asked: Query, drawn: Drawn) -> Answer:
    """The answer made of noisy totals, with its notes."""
    rows = drawn.rows(asked.confidence)
    said = [
        Note("asked", f"Asked: {question_words(asked)}.", {"unit_column": asked.unit}),
        *chosen_bounds(drawn),
        *given_bounds(asked),
    ]
    said += what_clipping_took(asked, drawn) + at_bounds(asked, drawn, rows)
    said += no_values(asked, drawn) + nothing_read(asked, [e for _, e in rows])
    if asked.private:
        said.append(Note("private groups", private_groups(asked), {"at_most": asked.private.at_most}))
    if not drawn.groups:
        words = "No group came through. More psi, a larger kappa or coarser groups let more through."
        said.append(Note("no groups", words))
    said += flag_notes([e for _, e in rows])
    return Answer(asked.by, rows, asked.guarantee, asked.confidence, (*said, *notes_on(asked)))


def question_words(asked: Query) -> str:
    """The question in words."""
    groups = f" by {', '.join(asked.by)}" if asked.by else ""
    some = f" where {asked.some}" if asked.some else ""
    return f"{', '.join(a.name for a in asked.asks)}{groups}{some}"


def notes_on(asked: Query) -> tuple[Note, ...]:
    """What a reader has to know about clipping and groups."""
    unit = asked.guarantee.unit
    said = [Note("price", asked.price)] if asked.price else []
    said += read_as_numbers(asked)
    said += [Note("readings", readings_words(asked.readings))] if asked.readings else []
    if asked.unit is not None:
        said.append(nobodys(asked.unit))
        words = (
            f"What one {unit} adds, over all groups, is scaled down by one factor where its L2 norm exceeds its "
            "contribution: one row's worth is what one row adds, and three rows in one group are three. Ratios of it "
            "stay: a mean weighs every clipped unit alike."
        )
        said.append(Note("scaling", words))
    if asked.unit is not None and any(a.contribution == 1.0 and a.kind != "units" for a in asked.asks):
        words = (
            f"With contribution 1, four rows of one {unit} in one group count as one row, and in four groups as half a "
            f'row each. Where many have several rows, ask for a larger contribution, or for "auto".'
        )
        said.append(Note("advice", words))
    if any(a.label and a.at != (0.5,) for a in asked.asks):
        words = (
            "min and max are the quantiles that their names say: the smallest and the largest value are one row's "
            "each, and no private answer has them."
        )
        said.append(Note("extremes", words))
    if any(a.top for a in asked.asks):
        words = "Intervals of the top groups hold for all groups at once: the largest are picked after the noise."
        said.append(Note("top", words))
    if any(a.kind == "distinct" for a in asked.asks) and asked.unit is not None:
        words = (
            f"One {unit} with more different values than it may count for counts a part for each; what that takes is "
            "not measured."
        )
        said.append(Note("distinct", words))
    if any(a.bounds is not None for a in asked.asks):
        words = (
            f"Bounds and edges are chosen privately from three noisy histograms, with {BOUNDS_SHARE:.0%} of the "
            "aggregate's psi^2: powers of 2 of both signs first, then where the values lie. They weigh noise against "
            "what they clip, and need not hold every value."
        )
        said.append(Note("method", words))
    if any(a.contribution == "auto" for a in asked.asks):
        words = (
            f"A contribution is chosen privately from 1 to 2^20 rows' worth, with {AUTO_SHARE:.0%} of the aggregate's "
            "psi^2; that also pays for saying what clipping took."
        )
        said.append(Note("method", words))
    elif asked.unit is not None and any(asked.norms_share(a) > 0.0 for a in asked.asks):
        said.append(Note("method", f"{asked.clipping_share:.0%} of psi^2 goes into saying what clipping took."))
    elif asked.unit is not None and any(asked.can_clip(a) for a in asked.asks):
        words = "What clipping takes is not measured (clipping_share=0): intervals may miss the truth unsaid."
        said.append(Note("unmeasured", words))
    if asked.adjacency == "replace-one":
        words = f"Under replace-one one {unit} can move the totals by up to twice its bound; noise is larger for it."
        said.append(Note("adjacency", words))
    if asked.by and asked.private is None:
        words = (
            "The groups are taken as public: as given, and not read from this table. If they were, say a list of the "
            "values that occur, each shows that somebody has it."
        )
        said.append(Note("public", words))
    return (*said, *hardly_private(asked.guarantee))


def hardly_private(guarantee: Guarantee) -> tuple[Note, ...]:
    """A warning where psi is so large that it protects next to nobody."""
    if not guarantee.psi > HARDLY_PRIVATE:
        return ()
    words = (
        f"Warning: psi = {guarantee.psi:.6g} is hardly any privacy. Whoever guesses whether one {guarantee.unit} is "
        "in the data can be right nearly always; 0.1 to 2 is typical."
    )
    return (Note("hardly private", words),)


def nobodys(unit: Unit) -> Note:
    """What becomes of rows that have no unit; how many they are is not for free."""
    missing = " or ".join(map(repr, columns_of(unit)))
    return Note("nobody", f"Rows whose {missing} is missing belong to nobody and are left out of every number.")


def chosen_bounds(drawn: Drawn) -> list[Note]:
    """Which bounds or edges were chosen, and at what price."""
    settled = {part.aggregate.name: part.aggregate for part in drawn.parts}
    return [Note("chosen bounds", _chosen(settled[a.name], bounds)) for a, bounds in drawn.bounds]


def _chosen(aggregate: Aggregate, bounds: Bounds) -> str:
    """The bounds of one aggregate, and about how much lies outside."""
    paid = f"chosen with {BOUNDS_SHARE:.0%} of its psi^2"
    if not bounds.seen:
        return f"{aggregate.name}: no value could be told from noise; bounds {list(UNSEEN)} stand for none ({paid})."
    if aggregate.edges:
        low, high = aggregate.edges[0], aggregate.edges[-1]
        return f"{aggregate.name}: {aggregate.bins} bins from {low:.6g} to {high:.6g}, {paid}."
    outside = f"; about {bounds.outside:.2g} of the rows lie outside" if bounds.outside > 0.001 else ""
    ends = f"[{bounds.lower:.6g}, {bounds.upper:.6g}]"
    return f"{aggregate.name}: bounds {ends}, {paid}{outside}.{_taken(aggregate, bounds)}"


def _taken(aggregate: Aggregate, bounds: Bounds) -> str:
    """How far the intervals of a mean reach for what its bounds take."""
    below, above = bounds.taken
    if aggregate.kind != "mean" or not below + above > 0.0:
        return ""
    return (
        f" They may raise a value by {below:.2g} and lower it by {above:.2g} on average over all groups, as far as "
        "noise lets one see, and each interval reaches that much further; a group with longer tails loses more."
    )


def given_bounds(asked: Query) -> list[Note]:
    """The bounds and edges that were given: a mean is that of values inside them."""
    said = []
    for a in asked.asks:
        bounded = [b for b in a.terms or (a,) if b.column and b.bounds is None and b.kind != "distinct"]
        columns = [(b.column, b.lower, b.upper) for b in bounded] + (
            [(a.weights[0], 0.0, a.weights[1])] if a.weights else []
        )
        if a.edges:
            words = f"{a.name}: values below {a.edges[0]:.6g} or above {a.edges[-1]:.6g} count in the end bins."
            said.append(Note("given bounds", words))
        elif columns:
            ends = [
                f"{name!r} below {low:.6g} counts as {low:.6g}, above {high:.6g} as {high:.6g}"
                for name, low, high in columns
            ]
            said.append(Note("given bounds", f"{a.name}: {'; '.join(ends)}."))
    return said


def at_bounds(asked: Query, drawn: Drawn, rows: Sequence[tuple[Key, Estimate]]) -> list[Note]:
    """The groups in which noise drove a mean to one of its bounds; from noisy numbers alone."""
    said = []
    for a in (part.aggregate for part in drawn.parts if part.aggregate.kind == "mean"):
        near = 1e-9 * (a.upper - a.lower)
        at = [key for key, e in rows if e.statistic == a.name and not a.lower + near < e.value < a.upper - near]
        named = ", ".join(" / ".join("NULL" if k is None else str(k) for k in key) for key in at[:MOST_NAMED])
        more = ", ..." if len(at) > MOST_NAMED else ""
        where = f" in {len(at):,} of {len(drawn.groups):,} groups ({named}{more})" if asked.by else ""
        words = f"{a.name}: the value lies at one of its bounds{where}, and says little: go by its interval."
        said += [Note("at bounds", words)] if at else []
    return said


def read_as_numbers(asked: Query) -> list[Note]:
    """Which columns without a type are read as numbers; from the question alone."""
    names = dict.fromkeys(name for a in asked.asks for name in a.columns if asked.reads.get(name) == "float64")
    said = []
    for name in names:
        words = f"{name!r} has no type of its own and is read as numbers; what does not read as one is missing."
        said.append(Note("read as numbers", words))
        said.append(
            Note("advice", f"Declare the type of {name!r}, with types= or --type {name}:float64, if you know it.")
        )
    return said


def no_values(asked: Query, drawn: Drawn) -> list[Note]:
    """Which columns without a type seem to hold no number at all; from the noisy numbers of values behind means."""
    said = []
    for part in drawn.parts:
        a, n = part.aggregate, part.noisy.totals.shape[0]
        if a.column in asked.reads and a.kind in ("mean", "variance", "deviation"):
            values = float(part.noisy.totals[:, 0, 0].sum())
            nothing = count_flag(values, part.noisy.sigma * sqrt(n))
            said += [Note("no values", NO_VALUES.format(a=a))] if nothing else []
    return said


def nothing_read(asked: Query, estimates: Sequence[Estimate]) -> list[Note]:
    """Which columns of where and by may hold what does not read so, where noise alone is behind every number."""
    sums = {a.name for a in asked.asks if a.kind == "sum"}  # which have no such flag
    judged = [e for e in estimates if e.statistic not in sums]
    noise = all(NOISE in e.flag for e in judged) and bool(judged or not estimates)
    said = unread(asked.readings) if asked.readings and noise else ""
    return [Note("unread", said)] if said else []


def private_groups(asked: Query) -> str:
    """How groups are chosen, in words; nothing where they are public."""
    private, unit = asked.private, asked.guarantee.unit
    if private is None:
        return ""
    sigma = Guarantee(asked.share(private.weight)).sigma(clipped_vector(private.contribution, asked.adjacency))
    threshold = private.threshold(sigma, sigma * 2.0**-24)
    return (
        f"Keys are those whose noisy number of {unit}s exceeds {threshold:.4g} (sigma {sigma:.4g}); one {unit} in more "
        f"than {private.at_most} counts nowhere."
    )


def what_clipping_took(asked: Query, drawn: Drawn) -> list[Note]:
    """For each aggregate what a unit may add, and about what that took away; from noisy numbers alone."""
    if asked.unit is None:
        return []
    return [_bound(asked, part, _took(asked, part, len(drawn.groups))) for part in drawn.parts]


def flag_notes(estimates: Sequence[Estimate]) -> list[Note]:
    """What the flags that occur mean, and how many numbers have them."""
    said = []
    for flag, meaning in FLAGS.items():
        n = sum(flag in e.flag for e in estimates)
        words = f'Flag "{flag}" ({n} of {len(estimates)} numbers): {meaning}.'
        said += [Note("flag", words, {"flag": flag, "numbers": n})] if n else []
    return said


def _bound(asked: Query, part: Part, took: str) -> Note:
    """What one unit adds at most, and what that took."""
    c, a, unit = part.contribution, part.aggregate, asked.guarantee.unit
    measured = part.norms is not None or not asked.can_clip(a)
    if a.kind == "distinct":
        words = f"{a.name}: one {unit} counts for at most {c:.4g} values, over all groups."
        return contribution_note(f"{words} {took}".strip(), a.name, c, "values", measured)
    worth = "one row's worth" if c == 1.0 else f"{c:.4g} rows' worth"
    chosen = " (chosen)" if a.contribution == "auto" else ""
    words = f"{a.name}: one {unit} adds at most {worth}{chosen} (L2, over all groups)."
    return contribution_note(f"{words} {took}".strip(), a.name, c, "rows", measured)


def contribution_note(words: str, statistic: str, at_most: float, of: str, measured: bool) -> Note:
    """The note on what one unit adds at most: to which statistic ("" for all), how much, and of what.

    of: "rows" for the L2 norm over all groups in rows' worth, "values" for different values, "cell" for rows in one
    cell of a cube, "each" for rows of a cube that count less, all alike, where there are more. measured: whether
    intervals hold what clipping may have taken.
    """
    values = {"statistic": statistic, "at_most": at_most, "of": of, "measured": measured}
    return Note("contribution", words, values)


def _took(asked: Query, part: Part, groups: int) -> str:
    """About how many units were clipped, and how much of the total that is."""
    if not asked.can_clip(part.aggregate):
        return ""
    c, said = part.contribution, clipping_words(part.norms, part.contribution)
    ceiling = part.aggregate.contribution == "auto" and c >= largest_contribution(part.aggregate, groups)
    return f"{said} The choice ended at the largest contribution there is: more may be clipped." if ceiling else said


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
        f"took about {_percent(lost)}, and up to {most} as far as noise lets one see."
    )


def _percent(share: float) -> str:
    """A share in percent, with two digits where it is small."""
    return f"{share:.0%}" if share >= 0.0995 else f"{100.0 * share:.2g}%"


def _without_noise(n: float, error: float) -> int:
    """A noisy number of units without the digits that noise has made."""
    step: int = 10 ** max(0, len(str(int(error))) - 1)
    return max(0, round(n / step) * step)
