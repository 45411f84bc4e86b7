"""Records beyond memory: Parquet files read by number, a few row groups at a time, and no record that stops a run."""

import os
import pickle
import subprocess
import sys
from datetime import date

import numpy as np
import pytest
import torch
from torch import nn

from psidp.bridges.torch import Columns, ParquetRecords, PrivateStep, PrivateTrainer
from psidp.bridges.torch.training.records import Records
from psidp.errors import MissingExtraError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
torch.set_num_threads(1)
CPU = torch.device("cpu")


def written(folder, files=3, rows=50, group=7, **more):
    """Files of records whose number says where they are; the last is shorter."""
    folder.mkdir(exist_ok=True)
    start = 0
    for number in range(files):
        n = rows - number
        values = np.arange(start, start + n)
        table = pa.table({
            "number": values, "half": values / 2, "user": [f"user {v % 5}" for v in values],
            "pixels": [[v, v + 1] for v in values], **{key: value(values) for key, value in more.items()},
        })  # fmt: skip
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=group)
        start += n
    return folder


def test_every_record_has_its_own_number_in_a_file_a_list_and_a_folder(tmp_path):
    folder = written(tmp_path / "data")
    (folder / "below").mkdir()
    (folder / "part-2.parquet").rename(folder / "below" / "part-2.parquet")
    (folder / "read me.txt").write_text("no records")
    whole = ParquetRecords(folder)
    assert (len(whole), whole.row_groups) == (147, 22)
    listed = ParquetRecords([folder / "part-0.parquet", str(folder / "part-1.parquet")])
    assert len(listed) == 99
    one = ParquetRecords(folder / "part-1.parquet", ["number", "pixels"])
    assert len(one) == 49
    assert [listed[n]["number"] for n in range(99)] == list(range(99))
    assert [one[n]["number"] for n in reversed(range(49))] == list(reversed(range(50, 99)))
    assert list(one[3]) == ["number", "pixels"]
    assert one[3]["pixels"].tolist() == [53, 54]
    assert sorted(whole[n]["number"] for n in range(147)) == list(range(147))  # "below" sorts before "part"
    record = listed[98]
    assert (record["half"], record["user"]) == (49.0, "user 3")


def test_the_length_is_read_from_footers_alone_and_a_draw_reads_each_row_group_once(tmp_path, monkeypatch):
    reads, real = [], pq.ParquetFile.read_row_group

    def read(self, group, *args, **kwargs):
        reads.append(group)
        return real(self, group, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", read)
    records = ParquetRecords(written(tmp_path / "data", files=1), cached=2)
    assert len(records) == 50
    assert reads == []
    for number in (3, 4, 5, 8, 30, 31):
        records[number]
    assert reads == [0, 1, 4]
    records[9], records[29]
    assert reads == [0, 1, 4]  # two are kept
    records[0]
    assert reads == [0, 1, 4, 0]


def test_a_value_that_is_missing_or_that_nobody_can_read_is_none_and_stops_nothing(tmp_path):
    text = pa.array([b"fine", b"\xff\xfe", None]).cast(pa.binary())
    table = pa.table({
        "text": pa.Array.from_buffers(pa.string(), 3, text.buffers()),
        "day": pa.array([0, 10**8, None], pa.int64()).cast(pa.int32()).view(pa.date32()),
        "pixels": pa.array([[1.0, None], None, []]),
        "tokens": pa.array([[1, 2], [1, None], None]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "odd.parquet")
    records = ParquetRecords(tmp_path / "odd.parquet")
    found = [records[n] for n in range(3)]
    assert [record["text"] for record in found] == ["fine", None, None]
    assert [record["day"] for record in found] == [date(1970, 1, 1), None, None]
    assert np.isnan(found[0]["pixels"][1])
    assert found[1]["pixels"] is None
    assert found[2]["pixels"].size == 0
    assert found[0]["tokens"].tolist() == [1, 2]
    assert found[1]["tokens"] is None
    assert records.column("text") == ["fine", None, None]


def test_what_is_no_set_of_parquet_files_is_refused_by_name(tmp_path):
    folder = written(tmp_path / "data")
    with pytest.raises(ValueError, match=r"source must be a Parquet file, .* is none"):
        ParquetRecords(tmp_path / "nowhere.parquet")
    with pytest.raises(ValueError, match="got none"):
        ParquetRecords([])
    with pytest.raises(ValueError, match="columns must be among those of the files, number, half"):
        ParquetRecords(folder, ["number", "weight"])
    with pytest.raises(ValueError, match="cached"):
        ParquetRecords(folder, cached=0)
    with pytest.raises(IndexError, match=r"record must be in \[0, 147\), got 147"):
        ParquetRecords(folder)[147]
    (folder / "part-9.parquet").write_bytes(b"no such thing")
    with pytest.raises(ValueError, match=r"part-9.parquet must be a Parquet file that can be read"):
        ParquetRecords(folder)
    pq.write_table(pa.table({"number": ["one"]}), folder / "part-9.parquet")
    with pytest.raises(ValueError, match=r"same columns of the same types; part-9.parquet has others"):
        ParquetRecords(folder, ["number"])


def test_without_pyarrow_the_refusal_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'psidp\[db\]'"):
        ParquetRecords("some.parquet")


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_read_the_records_of_each_draw_from_files_of_their_own(workers, tmp_path):
    data = ParquetRecords(written(tmp_path / "data"), cached=1)
    collate = Columns(["number", "pixels"], "half", size=3)
    records = Records(data, CPU, collate, workers)
    rng = np.random.default_rng(1)
    draws = [np.flatnonzero(rng.random(147) < 0.3) for _ in range(12)]
    for draw, (inputs, targets) in zip(draws, records.batches(draws), strict=True):
        assert inputs[:, 0].tolist() == draw.tolist()
        assert inputs[:, 2].tolist() == (draw + 1).tolist()
        assert targets.tolist() == (draw / 2).tolist()
    again = pickle.loads(pickle.dumps(data))
    assert again[146]["number"] == 146
    assert not {"_stores", "_process"} & set(data.__getstate__())


def test_columns_answer_for_every_record_and_what_they_cannot_read_adds_nothing():
    collate = Columns(["a", "b"], "y", size=3, classes=2)
    odd = [
        {"a": 1, "b": [2.0, 3.0], "y": 1}, {"a": None, "b": [2.0, 3.0], "y": 1}, {"a": "one", "b": [2, 3], "y": 0},
        {"a": 1, "b": [2.0], "y": 1}, {"a": 1, "b": [1.0, 2.0, 3.0], "y": 0}, {"a": 1, "b": [2.0, 3.0], "y": None},
        {"a": 1, "b": [2.0, 3.0], "y": 7}, {"a": 1, "b": [2.0, 3.0], "y": 0.5}, {}, {"a": 1, "b": [2.0, 3.0], "y": -1},
        {"a": 1, "b": [[2.0], [3.0, 4.0]], "y": 1}, {"a": 10**400, "b": [2.0, 3.0], "y": float("inf")},
    ]  # fmt: skip
    pairs = [collate(record) for record in odd]
    assert {(x.shape, x.dtype, y.shape, y.dtype) for x, y in pairs} == {((3,), torch.float32, (), torch.int64)}
    model = nn.Linear(3, 2)
    step = PrivateStep(model, nn.functional.cross_entropy, clip=1.0, noise_multiplier=1.0, expected_batch=12)
    added = step.contributions(torch.stack([x for x, _ in pairs]), torch.stack([y for _, y in pairs]))
    assert added.bool().any(1).tolist() == [number in (0, 4) for number in range(12)]
    x, y = Columns(["a"], "y")({"a": 2, "y": None})
    assert (x.tolist(), y.isnan().item()) == ([2.0], True)


def test_users_come_from_a_column_and_a_training_reads_their_files(tmp_path):
    records = ParquetRecords(written(tmp_path / "data"))
    users = records.column("user")
    assert users[:6] == ["user 0", "user 1", "user 2", "user 3", "user 4", "user 0"]
    assert isinstance(records.column("number"), np.ndarray)
    model = nn.Linear(1, 1)
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.01), lambda o, t: (o[:, 0] - t).square().sum(), records,
        collate=Columns(["half"], "number"), users=users, examples_per_user=4,
        sampling_rate=0.5, clip=1.0, noise_multiplier=1.0, steps=4,
    )  # fmt: skip
    assert trainer._step.expected_batch == 2.5
    assert trainer.fit().applied == 4


BEYOND = """
import resource, sys
from pathlib import Path
import torch
from torch import nn
from psidp.bridges.torch import Columns, ParquetRecords, PrivateTrainer

def used():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))

torch.set_num_threads(1)
model = nn.Linear(1024, 2)
def trained(records, workers):
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), nn.functional.cross_entropy, records,
        collate=Columns(["pixels"], "class", size=1024, classes=2), workers=workers,
        sampling_rate=0.002, clip=1.0, noise_multiplier=1.0, steps=3)
    return trainer.fit().applied
records = ParquetRecords(sys.argv[1], cached=2)
records[0]
most = used() + (64 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
print(trained(records, 0), trained(records, 1))
everything = ParquetRecords(sys.argv[1], cached=32)
try:
    print([everything[number]["class"] for number in range(0, 32_000, 1000)])
except MemoryError:
    print("all at once is too much")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's data")
def test_a_data_set_larger_than_the_memory_that_is_left_trains(tmp_path):
    """131 MB of numbers in 32 row groups, in a process that may take 64 MiB more than it has."""
    rng = np.random.default_rng(2)
    for part in range(2):
        pixels = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(16_000 * 1024, dtype=np.float32)), 1024)
        table = pa.table({"pixels": pixels, "class": rng.integers(0, 2, 16_000)})
        pq.write_table(
            table, tmp_path / f"{part}.parquet", row_group_size=1000, compression="none", use_dictionary=False
        )
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > 1.9 * (64 << 20)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    environment |= {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # others set a gigabyte aside when they begin
    environment |= {"MALLOC_MMAP_THRESHOLD_": "131072"}  # what is freed goes back at once
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BEYOND, str(tmp_path)],
        capture_output=True, text=True, check=False, env=environment, timeout=120,
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == ["3 3", "all at once is too much"], done.stderr[-2000:]


def test_a_dictionary_that_one_record_can_break_for_all_is_refused_by_its_type(tmp_path):
    short = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", "b"]))
    pq.write_table(pa.table({"who": short}), tmp_path / "short.parquet")
    with pytest.raises(ValueError, match="dictionaries with int32 indices, got 'who' with int8"):
        ParquetRecords(tmp_path / "short.parquet")
