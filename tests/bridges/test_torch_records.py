"""Records of any form become examples one by one, of one public shape, here or in worker processes."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from psidp.bridges.torch import PadTo, PrivateTrainer, next_token_loss
from psidp.bridges.torch.training.records import Records

torch.set_num_threads(1)
CPU = torch.device("cpu")


class Sentences:
    """Made-up sentences of 1 to 9 tokens, as dicts; each tells in which process it was read."""

    def __len__(self):
        return 30

    def __getitem__(self, number):
        length = 1 + number % 9
        return {"input_ids": list(range(number, number + length)), "read_by": os.getpid(), "drawn": torch.rand(())}


def whose(record):
    """The number of a sentence and of the process that read it."""
    return torch.tensor([record["input_ids"][0], record["read_by"]]), record["drawn"]


def padded(record):
    """Its tokens alone, in twelve places."""
    return PadTo(12)({"input_ids": record["input_ids"]})


def drawn_as(numbers):
    return [np.array(part) for part in numbers]


DRAWS = drawn_as([[3, 1, 4], [], [29], [1, 5, 9, 2, 6]])


def test_a_collate_sees_one_record_at_a_time():
    seen = []

    def collate(record):
        seen.append(record["input_ids"])
        return padded(record)

    inputs, targets = Records(Sentences(), CPU, collate).batch(np.array([0, 8, 17]))
    assert seen[1:] == [Sentences()[n]["input_ids"] for n in (0, 8, 17)]
    assert inputs["input_ids"].shape == targets.shape == (3, 12)


def test_what_a_record_becomes_does_not_depend_on_who_else_was_drawn():
    records = Records(Sentences(), CPU, padded)
    alone = [records.batch(np.array([n])) for n in range(30)]
    together = records.batch(np.arange(30))
    for n, (inputs, target) in enumerate(alone):
        assert torch.equal(inputs["input_ids"][0], together[0]["input_ids"][n])
        assert torch.equal(target[0], together[1][n])


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_read_the_same_records_in_the_same_order(workers):
    records = Records(Sentences(), CPU, whose, workers)
    found = [inputs[:, 0].tolist() for inputs, _ in records.batches(DRAWS)]
    assert found == [draw.tolist() for draw in DRAWS]


def test_workers_are_other_processes_that_end_with_the_iterator():
    records = Records(Sentences(), CPU, whose, 2)
    batches = records.batches(DRAWS * 10)
    first, _ = next(batches)
    readers = set(first[:, 1].tolist())
    assert os.getpid() not in readers
    batches.close()
    for reader in readers:
        with pytest.raises(ProcessLookupError):
            os.kill(reader, 0)


def test_records_read_by_workers_have_fresh_random_numbers_and_the_callers_stay():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    records = Records(Sentences(), CPU, whose, 2)
    drawn = torch.cat([numbers for _, numbers in records.batches([np.arange(30)] * 4)])
    assert len(drawn.unique()) > 115  # of 2^24: five collisions among 120 have a chance below 1e-15
    assert torch.equal(torch.get_rng_state(), before)


AFTER_A_QUERY = """
import gc
import duckdb, numpy as np, torch
from psidp.bridges.torch.training.records import Records

class Collecting:
    def __len__(self):
        return 8
    def __getitem__(self, number):
        gc.collect()
        return torch.ones(2), number

records = Records(Collecting(), torch.device("cpu"), workers=2)
gc.disable()
connection = duckdb.connect()
connection.sql("select sum(i * random()) from range(1000000) t(i)").fetchall()
circle = [connection]
circle.append(circle)
del connection, circle  # garbage now, with threads that no forked process has
read = records.batches([np.arange(8)] * 4)
print([numbers.tolist() for _, numbers in read] == [list(range(8))] * 4)
"""


def test_workers_leave_the_garbage_of_the_process_that_forked_them_alone():
    ran = subprocess.run([sys.executable, "-c", AFTER_A_QUERY], capture_output=True, text=True, check=False)
    assert ran.stdout == "True\n", ran.stderr


def test_a_draw_of_nobody_has_the_shapes_of_the_others():
    for workers in (0, 1):
        inputs, targets = next(Records(Sentences(), CPU, padded, workers).batches(drawn_as([[]])))
        assert inputs["input_ids"].shape == inputs["attention_mask"].shape == targets.shape == (0, 12)


@pytest.mark.parametrize(("length", "tokens", "mask", "labels"), [
    (2, [5, 6], [1, 1], [5, 6]),
    (3, [5, 6, 7], [1, 1, 1], [5, 6, 7]),
    (5, [5, 6, 7, 9, 9], [1, 1, 1, 0, 0], [5, 6, 7, -100, -100]),
])  # fmt: skip
def test_sequences_are_cut_or_padded_to_the_public_length(length, tokens, mask, labels):
    inputs, target = PadTo(length, fill={"input_ids": 9})({"input_ids": [5, 6, 7]})
    assert inputs["input_ids"].tolist() == tokens
    assert inputs["attention_mask"].tolist() == mask
    assert target.tolist() == labels


def test_a_class_is_a_target_and_a_given_mask_is_kept():
    record = {"input_ids": [5, 6], "attention_mask": [1, 0], "label": 3}
    inputs, target = PadTo(3, target="label")(record)
    assert inputs["attention_mask"].tolist() == [1, 0, 0]
    assert set(inputs) == {"input_ids", "attention_mask"}
    assert target.item() == 3


def test_the_loss_is_the_mean_over_tokens_that_have_a_label():
    torch.manual_seed(3)
    logits, labels = torch.randn(1, 6, 11), torch.tensor([[4, 1, -100, 7, 2, -100]])
    logs = logits.log_softmax(-1)
    by_hand = -(logs[0, 0, 1] + logs[0, 2, 7] + logs[0, 3, 2]) / 3
    assert next_token_loss(logits, labels).item() == pytest.approx(by_hand.item(), rel=1e-6)
    assert next_token_loss(logits, torch.full((1, 6), -100)).item() == 0.0


class Bigrams(nn.Module):
    """The next token from this one, whatever is masked."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 40)

    def forward(self, input_ids, attention_mask):
        return self.table(input_ids) * attention_mask[:, :, None]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_model_is_trained_on_padded_sentences(workers):
    torch.manual_seed(1)
    model = Bigrams()
    data = [{"input_ids": [n % 3, n % 3 + 1, n % 3 + 2, n % 3 + 3]} for n in range(90)]
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=4.0), next_token_loss, data,
        sampling_rate=0.5, clip=1.0, noise_multiplier=0.2, steps=30, collate=PadTo(6), workers=workers,
    )  # fmt: skip
    assert trainer.fit().applied == 30
    assert [model.table.weight[token].argmax().item() for token in range(5)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("data", "asked", "said"), [
    (Sentences(), {}, "got a dict with 'input_ids', 'read_by', 'drawn'. Say which part is the target"),
    (Sentences(), {"collate": 3}, "collate must be callable as collate(record), got int"),
    (Sentences(), {"collate": whose, "workers": -1}, "workers must be"),
    (Sentences(), {"collate": whose, "workers": 1.5}, "workers must be"),
    ((torch.zeros(3, 1), torch.zeros(3)), {"workers": 2}, "collate and workers must go with a Dataset"),
    ((torch.zeros(3, 1), torch.zeros(3)), {"collate": whose}, "collate and workers must go with a Dataset"),
    ([(1.0, 2.0)], {"collate": PadTo(3)}, "data must give dicts with 'input_ids'"),
])  # fmt: skip
def test_records_that_cannot_be_read_are_refused(data, asked, said):
    with pytest.raises((TypeError, ValueError)) as refused:
        Records(data, CPU, **asked)
    assert said in str(refused.value)


def test_a_length_that_is_none_is_refused():
    for wrong in (0, -3, 2.5, None):
        with pytest.raises((TypeError, ValueError), match="length must be"):
            PadTo(wrong)


class Odd(torch.utils.data.Dataset):
    """Targets that are floats, but for one, which is whole; an input of doubles among floats."""

    def __len__(self):
        return 6

    def __getitem__(self, number):
        x = torch.full((3,), 0.1 * number, dtype=torch.float64 if number == 4 else torch.float32)
        return x, 1 if number == 3 else 0.1 * number


def test_no_record_chooses_the_types_of_the_others():
    records = Records(Odd(), torch.device("cpu"))
    alone, among = records.batch(np.array([1, 2])), records.batch(np.array([1, 2, 3, 4]))
    for one, other in zip(alone, among, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other[:2])
    workers = Records(Odd(), torch.device("cpu"), workers=1)
    (read,) = workers.batches([np.array([1, 2, 3, 4])])
    assert all(torch.equal(a, b) for a, b in zip(read, among, strict=True))
