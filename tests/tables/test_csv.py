"""CSV files: what a line holds changes its own row and nothing else; types come from declarations and uses."""

import csv
import datetime
import io
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.cli.number_files import read_column
from psidp.tables.sources import csv as rules
from psidp.tables.sources import open_source
from reference.csv_rows import row_of, rows
from released import released

PIECES = [b"a", b"7", b",", b",", b'"', b'"', b"\r", b"\0", b"\xff", b"\xc3", b"\xc3\xa9", b" ", b"\\", b";", b"z" * 30]
ODD = [
    b"3000,n/a,A", b'9,"5,A', b'9,5,A"', b'"', b'9,"5","A', b"9,5", b"9,5,A,B", b"", b",", b",,", b"\xff\xfe,5,A",
    b"9,\x00,A", b"9,1e999,A", b"9,-1e999,B", b"9,nan,A", b"9,inf,B", b"9,5,A\r", b"9\r5\r,5,A", b"9;5;A", b"9\t5\tA",
    b'9,"5\r\r",A', b"who,x,ward", b"9,0x10,A", b"9,5.5.5,A", b"9,2026-01-01,A", b"9," + b"1" * 400 + b",A",
    b"9,5," + b"A" * (1 << 20), b'9,5,"' + b"," * 70_000, b"\xef\xbb\xbf9,5,A", b"9,true,A", b'"9"x,5,A', b"#9,5,A",
]  # fmt: skip


def of_any_bytes(dice):
    """A line of anything but line feeds."""
    if dice.random() < 0.5:
        return dice.choice(ODD)
    return bytes(dice.choice([*b'9,"\r\0\xff', dice.randrange(256)]) for _ in range(dice.randrange(40))).replace(
        b"\n", b""
    )


def ordinary(dice):
    return b"%d,%d,%s" % (dice.randrange(6), dice.randint(-20, 120), dice.choice([b"A", b"B", b'"C, or so"']))


@pytest.mark.parametrize("seed", range(4))
def test_lines_are_rows_as_plain_python_has_them(seed, monkeypatch):
    """2,000 files of all that can go wrong in a line, in blocks of any size, against one letter after the other."""
    dice, longest = random.Random(seed), 40
    monkeypatch.setattr(rules, "LONGEST", longest)
    for _ in range(500):
        width = dice.randint(1, 4)
        lines = [b"".join(dice.choices(PIECES, k=dice.choice([0, 1, 3, 6, 12]))) for _ in range(dice.randrange(12))]
        text = b"\n".join(lines) + dice.choice([b"", b"\n"])
        found = []
        for piece in rules.whole_lines(io.BytesIO(text), dice.choice([1, 3, 7, 64, 1000])):
            columns = rules.split(piece, width)
            for column in columns:
                column.validate(full=True)
            found += map(list, zip(*(column.to_pylist() for column in columns), strict=True))
        assert found == rows(text, width, longest), text
        assert [rules.fields(one) for one in lines] == [row_of(one, longest) for one in lines], text


def test_quoted_fields_come_back_as_python_wrote_them(tmp_path):
    cells = [
        ["1", 'Smith, "Jo"'],
        ["2", 'a""b'],
        ["3", '"'],
        ["4", "né à 漢"],
        ["5", "x" * 5000],
        ["6", ","],
        ["7", '""'],
    ]
    for end, quoting in (("\n", csv.QUOTE_MINIMAL), ("\r\n", csv.QUOTE_ALL)):
        with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator=end, quoting=quoting).writerows([["n", "odd name, really"], *cells])
        source = open_source(tmp_path / "t.csv")
        assert list(source.schema) == ["n", "odd name, really"]
        assert sorted(map(list, rows_in(source))) == cells


def rows_in(source):
    """The rows as the engine reads them."""
    return source.engine.rows(f"SELECT * FROM {source.text} AS source")


def in_file(path, lines, end=b"\n"):
    path.write_bytes(end.join([b"who,x,ward", *lines]) + dice_end(lines, end))
    return path


def dice_end(lines, end):
    """A file may lack its last line end, but an empty line has one."""
    return b"" if lines and len(lines) % 2 and lines[-1] else end


ASKS = [ask.count(), ask.sum("x", -10, 100), ask.mean("x", 0, 50), ask.histogram("x", [0, 10, 50])]
USES = [
    {"by": "ward", "groups": ["A", "B", "C, or so", None]},
    {"by": "ward", "groups": ["A", "B"], "where": "x >= -5"},
    {"where": ["x != 7", "ward != 'A'"]},
]


def totals(path, unit, use):
    """Exact totals of a question: for each measure its bound in steps, and an array by group, bin and coordinate."""
    curator = Curator(path, unit)
    priced = curator.ask(*ASKS, **use).at(1.0)
    cells = priced.totals.exact(priced.source, priced.dialect).cells
    curator.dispose()
    return [(bound.grid.bound, next(iter(tables.values()))) for bound, tables in zip(priced.bounds, cells, strict=True)]


@pytest.mark.parametrize("unit", [None, "who"])
def test_a_line_more_or_less_moves_the_totals_by_its_own_row_at_most(tmp_path, unit):
    """Neighbouring files, any bytes in the line; in integers, no tolerance. A unit's own line may turn its vector."""
    dice, moved = random.Random(13), 0
    for i in range(40):
        lines, use = [ordinary(dice) for _ in range(dice.randrange(12))], USES[i % len(USES)]
        odd = ODD[i] if i < len(ODD) else of_any_bytes(dice)
        at = dice.randint(0, len(lines))
        end = dice.choice([b"\n", b"\r\n"])
        without = totals(in_file(tmp_path / "a.csv", lines, end), unit, use)
        found = totals(in_file(tmp_path / "b.csv", [*lines[:at], odd, *lines[at:]], end), unit, use)
        for a, (bound, one), (_, other) in zip(ASKS, without, found, strict=True):
            apart = sum(int(x) ** 2 for x in (one.astype(object) - other.astype(object)).reshape(-1))
            assert apart <= ((1 if unit is None else 2) * bound) ** 2, (a, lines, odd)
            moved += apart > 0
    assert moved > 10  # and lines do count


def test_any_line_is_at_most_one_row_and_leaves_the_others(tmp_path):
    """The rows themselves, as the engine reads them: those of the file without the line, and none or one more."""
    dice, path = random.Random(5), tmp_path / "t.csv"
    for _ in range(40):
        lines = [ordinary(dice) for _ in range(dice.randrange(12))]
        odd, at = of_any_bytes(dice), dice.randint(0, len(lines))
        read = []
        for content in (lines, [*lines[:at], odd, *lines[at:]]):
            read.append(rows_in(open_source(in_file(path, content))))
        more = list(read[1])
        for row in read[0]:
            more.remove(row)
        assert len(more) <= 1, (lines, odd)


def visits(tmp_path, *more):
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["who,cost", *(f"{i},{i % 100}" for i in range(3000)), *more]) + "\n")
    return Curator(path, "who")


@pytest.mark.parametrize("line", ["3000,n/a", '3000,"50', '"', '3000,50,50,"', "3000", '3000,"n/a"'])
@pytest.mark.parametrize("where", ["cost >= 0", "cost < 1000", "cost != 50.5", None])
def test_one_odd_line_does_not_change_how_the_others_are_read(tmp_path, line, where):
    """3000,n/a once turned a column to text, and an exact count of 3,000 to 1; an open quote once halved a count."""
    asks = [ask.count(), ask.sum("cost", 0, 100), ask.histogram("cost", [0, 50, 100])]
    before = [row["value"] for row in released(visits(tmp_path), *asks, where=where)]
    after = [row["value"] for row in released(visits(tmp_path, line), *asks, where=where)]
    assert np.linalg.norm(np.subtract(before, after)) < 1.001
    assert before[0] == pytest.approx(3000, abs=1e-3)


def test_an_open_quote_ends_with_its_line(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i},{i}" for i in range(100)]
    path.write_text("\n".join(["who,x", *lines[:50], '50,"', *lines[50:], '100,"', "101,1"]) + "\n")
    assert released(Curator(path, "who"), ask.count()).value("count") == pytest.approx(101, abs=1e-3)


@pytest.fixture
def clinic():
    dice = np.random.default_rng(3)
    n = 2000
    words = np.array(["A", 'B "new", wing', "C, or so", "né"])
    return pa.table(
        {
            "patient": dice.integers(0, 300, n),
            "ward": words[dice.integers(0, 4, n)],
            "floor": dice.integers(-1, 4, n),
            "cost": [None if x < 0 else round(float(x), 4) for x in dice.normal(300, 200, n)],
            "day": [datetime.date(2026, 1, 1) + datetime.timedelta(int(d)) for d in dice.integers(0, 90, n)],
            "at": [
                datetime.datetime(2026, 1, 1, 12) + datetime.timedelta(0, int(s)) for s in dice.integers(0, 10**7, n)
            ],
            "urgent": dice.random(n) < 0.3,
        }
    )


QUESTIONS = [
    {"by": "ward", "groups": ["A", 'B "new", wing', "C, or so", "né", "D"]},
    {"by": "floor", "groups": [-1, 0, 1, 2, 3, None]},
    {"by": ["urgent", "ward"], "groups": {"urgent": [True, False], "ward": ["A", "né"]}},
    {"by": "day", "groups": [datetime.date(2026, 1, d) for d in range(1, 20)]},
    {"where": "cost >= 250.5"},
    {"where": ["floor > 0", "floor != 2"]},
    {"where": "day < '2026-02-01'"},
    {"where": "at >= '2026-02-01 13:00:00'"},
    {"where": "urgent = true"},
    {"where": "ward = 'C, or so'"},
    {"where": "patient <= 150"},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: str(q.get("where", q.get("by"))))
def test_an_ordinary_file_gives_what_parquet_gives(clinic, tmp_path, question):
    """The utility twin: quotes, commas, dates, truth values, missing cells; types by use, and by declaration."""
    pyarrow.csv.write_csv(clinic, tmp_path / "v.csv")
    clinic.to_pandas().to_csv(tmp_path / "w.csv", index=False, lineterminator="\r\n")
    pyarrow.parquet.write_table(clinic, tmp_path / "v.parquet")
    types = {
        "patient": "int64",
        "floor": "int64",
        "cost": "float64",
        "day": "date",
        "at": "timestamp",
        "urgent": "boolean",
    }
    asks = [ask.count(), ask.units(), ask.sum("cost", 0, 500), ask.histogram("cost", range(0, 501, 50))]
    terms = {"contribution": 64} | question
    curators = [Curator(tmp_path / "v.parquet", "patient"), Curator(tmp_path / "v.csv", "patient")]
    curators += [Curator(tmp_path / "w.csv", "patient"), Curator(tmp_path / "v.csv", "patient", types=types)]
    first, *others = [released(curator, *asks, **terms) for curator in curators]
    for other in others:
        assert [key for key, _ in other.rows] == [key for key, _ in first.rows]
        values = [[e.value for _, e in answer.rows] for answer in (first, other)]
        assert values[1] == pytest.approx(values[0], rel=1e-5, abs=1e-3)
    assert first.rows[0][1].value > 20


def test_truth_values_add_up_and_private_keys_are_text(clinic, tmp_path):
    pyarrow.csv.write_csv(clinic, tmp_path / "v.csv")
    curator = Curator(tmp_path / "v.csv", "patient")
    urgent = sum(clinic["urgent"].to_pylist())
    answer = released(curator, ask.sum("urgent", 0, 1), contribution=64)
    assert answer.rows[0][1].value == pytest.approx(urgent, abs=1e-3)
    chosen = released(curator, ask.units(), by="floor", groups=PrivateGroups(1e-9, 8), psi=5.0)
    assert [row["floor"] for row in chosen] == ["-1", "0", "1", "2", "3"]


def test_a_declared_type_is_read_row_by_row(tmp_path):
    cells = [
        "7",
        "7.0",
        "7.5",
        "1e3",
        "0x10",
        "n/a",
        "",
        '""',
        "9" * 19,
        "9" * 30,
        " 8 ",
        "-3",
        "true",
        "2026-01-01",
        "nan",
    ]
    (tmp_path / "t.csv").write_text("n,x\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))

    def read(kind):
        source = open_source(tmp_path / "t.csv", types={"x": kind})
        return [x for _, x in sorted(rows_in(source), key=lambda row: int(row[0]))]

    assert read("int64") == [7, 7, *[None] * 8, 8, -3, *[None] * 3]
    assert read("float64")[:12] == [7.0, 7.0, 7.5, 1e3, None, None, None, None, 1e19, 1e30, 8.0, -3.0]
    assert read("float64")[12:14] == [1.0, None]
    assert read("date")[11:] == [None, None, datetime.date(2026, 1, 1), None]
    assert read("boolean") == [*[None] * 12, True, None, None]
    assert read("string")[5:8] == ["n/a", None, ""]
    whole = Curator(tmp_path / "t.csv", "n", types={"x": "int64"})
    assert released(whole, ask.count(), where="x >= 0").value("count") == pytest.approx(3, abs=1e-3)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "first line"), (b"\n1,2\n", "first line"), (b'a,"b\n1,2\n', "first line"), (b"a,a\n", "different names"),
        (b"a,A\n", "different names"), (b",a\n", "column 1. Where pandas"), (b"a;b\n1;2\n", "separated by commas"),
        (b"a\tb\n", "separated by commas"), (b"a,b\r1,2\r", "end in a line feed"), (b"a" * 2_000_000, "first line"),
        (b"a," + b"b" * 1001 + b"\n", "at most 1,000 letters"),
    ],
)  # fmt: skip
def test_a_first_line_that_names_no_columns_is_refused(tmp_path, content, words):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        Curator(tmp_path / "t.csv", None)


@pytest.mark.parametrize("content", [b"a,b", b"a,b\n", b"a,b\r\n", b"\xef\xbb\xbfa,b\n\n", b'"a","b"\n'])
def test_a_file_may_have_no_rows(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    curator = Curator(tmp_path / "t.csv", "a")
    assert released(curator, ask.count(), ask.sum("b", 0, 1)).value("count") == pytest.approx(0, abs=1e-3)


def test_what_types_may_be_declared(tmp_path):
    (tmp_path / "t.csv").write_text("who,x\n1,2\n")
    for source, types, words in (
        (tmp_path / "t.csv", {"y": "int64"}, r"types must name columns .* \(who, x\), got 'y'"),
        (
            tmp_path / "t.csv",
            {"x": "money"},
            "must be one of string, int64, float64, boolean, date, timestamp, got 'money'",
        ),
        (pa.table({"x": [1]}), {"x": "string"}, r"types must name .*\(none here\)"),
    ):
        with pytest.raises(ValueError, match=words):
            Curator(source, None, types=types)
    with pytest.raises(ValueError, match=r'types=\{\'who\': "int64"\}, or --type who:int64'):
        released(Curator(tmp_path / "t.csv", "who"), ask.sum("who", 0, 1), psi=1.0)
    with pytest.raises(TypeError, match="must hold numbers to have a sum, got VARCHAR"):
        released(Curator(tmp_path / "t.csv", None, types={"x": "string"}), ask.sum("x", 0, 1), psi=1.0)


def test_a_column_for_release_has_a_number_for_each_line(tmp_path):
    """`psidp release column` reads the same lines; whatever one says, it is one number, and the others stay."""
    path, dice = tmp_path / "t.csv", random.Random(8)
    for odd in ODD:
        lines = [ordinary(dice) for _ in range(6)]
        at = dice.randint(0, 6)
        path.write_bytes(b"\n".join([b"who,x,ward", *lines]) + b"\n")
        before = read_column(str(path), "x")
        path.write_bytes(b"\n".join([b"who,x,ward", *lines[:at], odd, *lines[at:]]) + b"\n")
        assert np.array_equal(np.delete(read_column(str(path), "x"), at), before), odd


def test_a_pandas_reader_agrees(tmp_path, clinic):
    """Another reader: pandas has the same cells from an ordinary file."""
    pyarrow.csv.write_csv(clinic, tmp_path / "v.csv")
    theirs = pd.read_csv(tmp_path / "v.csv", dtype=str).astype(object)
    ours = list(map(list, rows_in(open_source(tmp_path / "v.csv"))))
    assert ours == theirs.where(theirs.notna(), None).to_numpy().tolist()


def test_words_that_stand_for_nothing_are_missing_where_they_are_declared(tmp_path):
    """NA in a column of units, of groups or of text; elsewhere it is a word like any other."""
    path = tmp_path / "v.csv"
    path.write_text("who,ward,x\n1,A,5\nNA,A,6\n2,NA,7\n3,n/a,NA\n4,,9\n")
    plain, told = Curator(path, "who"), Curator(path, "who", missing=["NA", "n/a"], types={"ward": "string"})
    for where, before, after in ((None, 5, 4), ("ward is null", 1, 3), ("x > 0", 4, 3), ("ward != 'A'", 2, 0)):
        found = [round(released(c, ask.count(), where=where).value("count")) for c in (plain, told)]
        assert found == [before, after], where
    groups = released(told, ask.count(), by="ward", groups=["A", None])
    assert [round(row["value"]) for row in groups] == [1, 3]
    path.write_text("who,x\n1,5\n2,-99\n3,6\n")
    for types in (None, {"x": "int64"}, {"x": "float64"}):  # -99 is missing however the column is read
        coded = Curator(path, "who", missing="-99", types=types)
        assert released(coded, ask.sum("x", -100, 100)).value("sum of x") == pytest.approx(11, abs=0.01), types
    for source, missing in ((pa.table({"who": [1]}), "NA"), (path, 7), (path, []), (path, [None])):
        with pytest.raises((ValueError, TypeError), match="missing"):
            Curator(source, "who", missing=missing)
