"""Several processes train one model: the integers of one process, noise once, one account, whoever is killed.

The processes are forks of `ranked.py`, gloo on 127.0.0.1; each scenario of it runs once.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from psidp.bridges.torch.step.ranks import ALONE, Ranks, _packed, _unpacked
from psidp.bridges.torch.step.slots import even
from psidp.bridges.torch.training.batches import FixedBatches
from psidp.bridges.torch.training.deals import Deals

HERE = Path(__file__).parent
LOST = "ended or did not answer in time. Start all of them again"
STEPS = 12


@cache
def told(scenario):
    """What the ranks of a scenario said."""
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, HERE / "ranked.py", scenario, folder],
            capture_output=True,
            text=True,
            timeout=300,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def said(ranks):
    assert [rank["code"] for rank in ranks] == [0] * len(ranks), ranks
    return [rank["said"] for rank in ranks]


def together(ranks, step):
    """The totals of a step that the ranks noised, one part after the other."""
    return [total for rank in ranks for total in rank["totals"][step]]


@pytest.mark.parametrize(
    ("setting", "size"),
    [("plain", 2), ("plain", 4), *[(name, 2) for name in ("by layer", "adaptive", "bands", "fixed", "workers")]],
)
def test_ranks_have_the_totals_and_the_noisy_gradients_of_one_process_bit_for_bit(setting, size):
    """The same coins, places and key streams; one process takes the noise of each part from that part's stream."""
    one, *ranks = said(told("same")[setting][str(size)])
    assert len(ranks) == size
    length = len(one["totals"][0])
    for step, totals in enumerate(one["totals"]):
        assert together(ranks, step)[:length] == totals
    assert any(any(totals) for totals in one["totals"])
    assert len(set(one["gradients"])) == 5  # every step has another
    assert all(rank["gradients"] == one["gradients"] for rank in ranks)
    assert all(rank["model"] == one["model"] for rank in ranks)
    assert all(rank["clip"] == one["clip"] for rank in ranks)


def test_every_parameter_has_noise_from_one_rank_and_from_no_other():
    """A part is filled up to a multiple of four numbers, which nobody sees."""
    one, *ranks = said(told("same")["plain"]["4"])
    length = len(one["totals"][0])
    assert [rank["noised"] for rank in ranks] == [5 * Ranks(0, 4).part_of(length)] * 4
    assert 5 * length <= sum(rank["noised"] for rank in ranks) < 5 * (length + 16)


def test_two_and_four_ranks_sum_the_same_integers_in_the_first_step():
    two, four = (said(told("same")["plain"][size])[1:] for size in ("2", "4"))
    length = 93
    assert together(two, 0)[:length] == together(four, 0)[:length]
    assert two[0]["gradients"][0] != four[0]["gradients"][0]  # parts differ, so do their key streams


@pytest.mark.parametrize("size", [2, 3])
def test_sums_over_ranks_are_those_of_pythons_integers_in_48_bits_and_beyond(size):
    for found in said(told("sums")[str(size)]):
        assert found == [True] * 16


def test_draws_of_nobody_are_dealt_too_and_rank_0_says_for_how_many_epochs():
    """60 records at a rate of 0.01, one example at a time: more than half of the draws are empty."""
    first, second = said(told("sums")["empty"])
    assert first == second
    assert first["started"] == 100


def test_forty_eight_bits_hold_what_is_sent_in_them():
    rows = torch.tensor([[0, 1, -1, 2**47 - 1, -(2**47), 2**32, -(2**32), 5], [0, 2, -7, 2**47 - 1, 2**31, -1, 3, 9]])
    assert _packed(rows).shape == (2, 48)
    assert _unpacked(_packed(rows)).tolist() == rows.sum(0).tolist()


@pytest.mark.parametrize("micro_batch", [6, 1])
def test_neighbours_differ_by_at_most_the_clip_in_integers_across_ranks(micro_batch):
    """Each of 24 records left out, NaN, huge and tiny ones among them, everybody else in their places."""
    ranks = said(told("neighbours")[str(micro_batch)])
    bound, parts = ranks[0]["bound"], []
    for record in range(24):
        with_it, without = together(ranks, 2 * record), together(ranks, 2 * record + 1)
        apart = sum((a - b) ** 2 for a, b in zip(with_it, without, strict=True))
        assert apart <= bound**2
        parts.append(apart / bound**2)
    assert parts[0] == 0.0  # NaN adds nothing
    assert sum(part > 0.999 for part in parts) > 12  # most attain it


def test_whoever_is_killed_wherever_there_is_one_account_and_the_run_goes_on_on_other_ranks():
    for kill in told("kills"):
        (victim, place, when, _), counted = kill["dies"], kill["counted"]
        assert [rank["code"] for rank in kill["broken"]] == ([3, -9], [-9, 3])[victim == 0], kill["dies"]
        assert LOST in kill["broken"][1 - victim]["error"]
        for begun in kill["logs"]:  # what each rank found in the journal as it began its steps
            assert all(number + 1 <= steps for number, steps in enumerate(begun))
            assert len(begun) <= counted <= len(begun) + 1
        assert [rank["said"] for rank in kill["again"]] == [STEPS] * len(kill["again"])
        paid_again = (place, when) == ("Payment.pay", "after")  # before the journal: the safe side
        assert kill["spent"] == 1 + paid_again
        assert kill["last"] == ["answered", STEPS]
        assert {"ledger.db", "run.pt", "run.pt.steps"} <= set(kill["files"])
        assert all(name in ("ledger.db", "run.pt", "run.pt.steps") or "log" in name for name in kill["files"])
    assert {len(kill["again"]) for kill in told("kills")} == {1, 2, 3}
    assert {kill["counted"] for kill in told("kills")} >= {0, 3, 4, 6, 8, 9}


def test_the_survivor_of_a_kill_says_how_many_steps_count_and_the_ledger_notes_them():
    for kill in told("kills"):
        if kill["dies"][0] == 1 and kill["counted"]:
            (note,) = kill["broken"][0]["notes"]
            assert (
                note == f"{kill['counted']} of {STEPS} steps were started and count. Make this trainer again to go on."
            )
        elif kill["counted"]:
            assert kill["broken"][1]["notes"] == ["Rank 0 counts the steps that were started."]


def test_a_rank_that_does_not_answer_ends_the_others_when_their_patience_does():
    first, hung = told("hangs")
    assert LOST in first["error"]
    assert first["notes"][0].startswith("2 of 5 steps were started and count.")
    assert hung["code"] == -14  # its own alarm clock: nobody else stopped it


@pytest.mark.parametrize(
    ("case", "rank", "sentence"),
    [
        ("clip", 1, "clip must be the same on all ranks, got 0.8 on rank 1 and 0.7 on rank 0."),
        ("micro_batch", 1, "micro_batch must be the same on all ranks, got 5 on rank 1 and 6 on rank 0."),
        ("data", None, "data must be the same records under the same numbers on all ranks"),
        ("mask", None, "mask is not the same on all ranks."),
        ("users", None, "users (whose the records are) must be left out on several ranks, got users on 2 of them"),
        ("budget", 0, "Budget 'models' has psi 0.01 left"),
        ("loss", 1, "TypeError: 'NoneType' object is not callable"),
        ("drift", None, "2.bias is not the same on all ranks. The promise stands"),
    ],
)
def test_what_one_rank_has_otherwise_stops_all_of_them_by_name(case, rank, sentence):
    for number, ended in enumerate(told("refusals")[case]):
        assert ended["code"] == 3
        if rank in (None, number):
            assert sentence in ended["error"]
        else:
            assert f"rank {rank} stopped with an error, which it tells itself; so all 2 stop." in ended["error"]


def test_the_example_trains_under_torchrun_and_all_ranks_have_one_model(tmp_path):
    words = ["--standalone", "--nproc-per-node", "2", str(HERE.parent.parent / "examples" / "distributed.py")]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words, "--epochs", "1", "--checkpoint", "run.pt"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(": model ") for line in done.stdout.splitlines() if ": model " in line)
    assert sorted(lines) == ["rank 0", "rank 1"]
    assert len(set(lines.values())) == 1
    assert "16 steps, epsilon" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.pt", "run.pt.steps"]


def test_every_rank_has_as_many_micro_batches_as_the_others_and_all_places_are_dealt():
    assert even(378, 256) == 189
    assert [even(378, 256, ranks) for ranks in (2, 3, 4)] == [189, 126, 95]
    deals = Deals(Ranks(0, 4), FixedBatches(50, 1), 53, even(53, 8, 4))
    dealt = deals._dealt(FixedBatches(50, 1).of(0))
    assert dealt.size % (4 * even(53, 8, 4)) == 0
    assert sorted(dealt[dealt >= 0]) == list(range(50))
    assert not (dealt[53:] >= 0).any()  # what fills up is no place: nobody is ever there


def test_with_one_example_at_a_time_a_record_has_its_rank_by_its_own_lot():
    """False alarm below 1e-6 (five deviations of 2,000 fair lots over three ranks)."""
    deals = Deals(Ranks(0, 3), FixedBatches(2000, 1), 0, 1)
    hands = deals._dealt(FixedBatches(2000, 1).of(0)).reshape(3, -1)
    assert sorted(hands[hands >= 0]) == list(range(2000))
    for hand in hands:
        assert abs((hand >= 0).sum() - 2000 / 3) < 5 * (2000 * 2 / 9) ** 0.5


def test_a_process_alone_is_alone():
    assert Ranks.joined() is ALONE
    assert (ALONE.meet(7), ALONE.added(3), ALONE.unlike({}), ALONE.part_of(5)) == (7, 3, None, 5)
    ALONE.stop(ValueError())
