"""Frames: what one cell holds changes its own row and nothing else, whatever Python object it is."""

import datetime
import decimal
import random
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.tables.sources.frames import arrow_frame, text_of
from released import released


class Spiteful(str):
    """A text that fails whatever one does to it."""

    def _fail(self, *_):
        raise RuntimeError("Bob, HIV positive")

    __slots__ = ()
    __str__ = __repr__ = __eq__ = __ne__ = __lt__ = encode = isascii = __format__ = _fail
    __hash__ = str.__hash__


class Vague:
    """An object that is nothing."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __str__(self):
        raise RuntimeError


class Elsewhere(datetime.tzinfo):
    """A zone that fails."""

    def utcoffset(self, _):
        raise RuntimeError


def odd_objects():
    """One of every kind; made when asked for, since tools look at what a module holds, and some of these bite."""
    return [
        "unknown", "", "\ud800", "\0", None, float("nan"), pd.NA, pd.NaT, b"\xff", b"7", True, False, 10**5000, 7, 7.5,
        -(2**70), float("inf"), np.int8(7), np.float32(7.5), np.bool_(True), np.longdouble(7), np.str_("7"), 1j, [7],
        np.datetime64("2026-01-01"), decimal.Decimal("7.5"), decimal.Decimal("sNaN"), {"a": 7}, (7,), {7}, object(),
        Vague(), Spiteful("7"), datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 5), uuid.UUID(int=7), int, len,
        datetime.datetime(2026, 1, 1, tzinfo=Elsewhere()), datetime.time(5), datetime.timedelta(1), range(3),
        pd.Timestamp("2026-01-01"), pd.Interval(0, 1), np.array([1, 2]), np.void(b"7"), pd.Series([1]), "7" * 100_000,
    ]  # fmt: skip


def test_an_object_is_text_or_missing_and_never_a_failure():
    for value in odd_objects():
        text = text_of(value)
        assert text is None or (type(text) is str and text.encode().decode() == text)


def test_what_objects_say_is_kept():
    values = [
        "a",
        7,
        7.5,
        True,
        b"x",
        decimal.Decimal("1.50"),
        datetime.date(2026, 1, 2),
        uuid.UUID(int=1),
        Spiteful("7"),
    ]
    texts = ["a", "7", "7.5", "true", "x", "1.50", "2026-01-02", str(uuid.UUID(int=1)), "7"]
    assert [text_of(value) for value in values] == texts
    assert text_of(datetime.datetime(2026, 1, 2, 3, 4, 5, 6)) == "2026-01-02 03:04:05.000006"
    assert text_of(1 / 3) == repr(1 / 3)


def frames(values):
    """The values as an object column of pandas and of Polars."""
    who = np.arange(len(values))
    column = np.empty(len(values), object)
    for i, value in enumerate(values):
        column[i] = value
    yield pd.DataFrame({"who": who, "x": pd.Series(column, dtype=object)})
    yield pl.DataFrame({"who": who, "x": pl.Series(values, dtype=pl.Object)})


def test_a_row_more_with_any_object_in_it_leaves_the_others_as_they_were():
    """Rows as the engine gets them, and what a curator makes of them: no failure, no other row."""
    dice = random.Random(2)
    for odd in odd_objects():
        values = [dice.choice([3, 4.5, "5", "n/a", None, True]) for _ in range(dice.randrange(6))]
        for small, large in zip(frames(values), frames([*values, odd]), strict=True):
            before, after = (arrow_frame(frame, ())[0]["x"].to_pylist() for frame in (small, large))
            assert after[:-1] == before
            answers = [
                released(Curator(frame, "who"), ask.count(), ask.sum("x", 0, 10), where="who >= 0")
                for frame in (small, large)
            ]
            counts, sums = ([answer.rows[i][1].value for answer in answers] for i in (0, 1))
            assert counts[1] - counts[0] == pytest.approx(1, abs=1e-3)
            assert -1e-3 < sums[1] - sums[0] < 10.001


ORDINARY = {
    "whole": (list(range(50)), [{"by": "x", "groups": [3, 4, 99]}, {"where": "x >= 25"}, {"where": "x != 7"}]),
    "real": ([i / 4 for i in range(50)], [{"where": "x >= 5.25"}]),
    "text": ([f"w{i % 5}" for i in range(50)], [{"by": "x", "groups": ["w1", "w2", "no"]}, {"where": "x = 'w3'"}]),
    "truth": ([i % 3 == 0 for i in range(50)], [{"by": "x", "groups": [True, False]}, {"where": "x = true"}]),
    "instant": (
        [datetime.datetime(2026, 1, 1 + i % 28, i % 24) for i in range(50)],
        [{"where": "x >= '2026-01-15'"}, {"where": "x <= '2026-01-10'"}, {"where": "x < '2026-01-10 05:00:00'"}],
    ),
}


@pytest.mark.parametrize("odd", ["unknown", [7], -1, True, "2026-01-01"], ids=repr)
@pytest.mark.parametrize("kind", list(ORDINARY))
def test_one_unknown_among_others_is_no_refusal_and_changes_no_answer(kind, odd):
    """pandas makes objects of a whole column for one odd cell; a curator answers as it did without that row."""
    values, questions = ORDINARY[kind]
    small = pd.DataFrame({"who": range(50), "x": values})
    column = np.empty(51, object)
    column[:] = [*values, odd]
    large = pd.DataFrame({"who": range(51), "x": pd.Series(column).infer_objects()})
    asks = [ask.count()] + ([ask.sum("x", 0, 10)] if kind in ("whole", "real", "truth") else [])
    for question in [{}, *questions]:
        asked = [a for a in asks if question.get("by") != "x" or a.name == "count"]
        before, after = (
            [e.value for _, e in released(Curator(frame, "who"), *asked, **question).rows] for frame in (small, large)
        )
        apart = np.abs(np.subtract(before, after))
        assert sum(x > 1e-3 for x in apart[:: len(asked)]) <= 1, question
        assert all(x < 10.001 for x in apart), question


def test_a_unit_of_objects_is_text():
    frame = pd.DataFrame({"who": [1, 1, "2", None, 2, "x"], "x": [1.0] * 6})
    assert released(Curator(frame, "who"), ask.units()).value("units") == pytest.approx(3, abs=1e-3)


def test_a_declared_type_of_a_frame_does_not_depend_on_its_rows():
    """pandas makes fractions of whole numbers where one is missing; declared, they are whole numbers again."""
    for values in ([1, 2, 2], [1, 2, 2, None], [1, 2, 2, "x"], [1, 2, 2, 2.5]):
        frame = pd.DataFrame({"who": values, "x": values})
        curator = Curator(frame, "who", types={"who": "int64", "x": "int64"})
        assert [str(kind) for kind in curator.source.schema.values()] == ["BIGINT", "BIGINT"]
        answer = released(curator, ask.count(), by="x", groups=[1, 2], contribution=4)
        assert [round(row["value"], 3) for row in answer] == [1.0, 2.0]


@pytest.mark.parametrize("names", [("x", "x"), ("X", "x")])
def test_a_cell_decides_no_type_where_names_differ_by_case_alone(names):
    """DuckDB calls the second column x_1."""
    for values in ([1, 2], [1, 2.5], [1, None], [1, "a"]):
        frame = pd.concat([pd.Series([3, 4]), pd.Series(values)], axis=1, keys=names)
        source = Curator(frame, None).source
        assert {str(kind) for kind in source.schema.values()} == {"VARCHAR"}
        assert source.untyped == {names[0], "x_1"}


def test_lists_of_one_length_bar_no_other_column():
    frame = pa.table({"n": [1, 2, 3], "v": pa.array([[0.5, 1.0], None, [2.0, 3.0]], pa.list_(pa.float32(), 2))})
    assert round(released(Curator(frame, None), ask.count(), where="n > 1").value("count")) == 2
    assert round(released(Curator(frame, None), ask.count(), where="v is not null").value("count")) == 2


def test_frames_keep_their_types():
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], "Int64"), "f": [0.5, float("nan")], "s": ["a", None], "b": [True, False],
            "t": pd.to_datetime(["2026-01-01", None]), "z": pd.to_datetime(["2026-01-01", None], utc=True),
            "c": pd.Categorical(["u", "v"]), "h": np.array([1, 2], np.float16), "d": pd.to_timedelta([1, 2], "D"),
            "w": pd.Categorical([1, 2]), "k": pd.cut([1, 5], [0, 2, 6]), "p": pd.period_range("2026", periods=2),
        }
    )  # fmt: skip
    arrow, untyped = arrow_frame(frame, ())
    assert untyped == set("fsbtzchdwkp")
    assert arrow["c"].to_pylist() == ["u", "v"]
    assert arrow["w"].to_pylist() == ["1", "2"]
    assert arrow["k"].to_pylist() == ["(0, 2]", "(2, 6]"]
    assert arrow["f"].to_pylist() == [0.5, None]
    assert [str(arrow[name].type) for name in "ib"] == ["int64", "bool"]
    answer = released(Curator(frame, None), ask.count(), by="k", groups=["(0, 2]"])
    assert answer.value("count", "(0, 2]") == pytest.approx(1, abs=1e-3)
    assert released(Curator(frame, None), ask.sum("h", 0, 5)).rows[0][1].value == pytest.approx(3, abs=1e-3)


def test_what_is_no_frame_is_refused_by_its_type():
    for source in (7, [1, 2], {"a": [1]}):
        with pytest.raises(
            TypeError, match="the table must be a path, a pandas, Polars or Arrow frame, or with name= a connection"
        ):
            Curator(source, None)


def test_a_typed_frame_keeps_its_text():
    """Arrow and Polars say what a column holds; text that looks like numbers stays text there."""
    for frame in (pa.table({"x": ["1", "2"]}), pl.DataFrame({"x": ["1", "2"]})):
        with pytest.raises(TypeError, match="must hold numbers"):
            released(Curator(frame, None), ask.sum("x", 0, 1), psi=1.0)


@pytest.mark.parametrize("last", [0, 1])
def test_a_text_in_a_dictionary_that_is_no_utf8_fails_in_no_query(last):
    words = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff\xfe"], pa.binary()).buffers())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0, last], pa.int8()), words)
    frame = pa.table({"who": [1, 2, 3, 4], "g": column})
    counted = released(Curator(frame, "who"), ask.count(), where="upper(g) = 'A'")
    assert round(counted.value("count")) == 4 - last
    grouped = released(Curator(frame, None), ask.count(), by="g", groups=["a", "b"])
    assert [round(row["value"]) for row in grouped] == [4 - last, 0]
