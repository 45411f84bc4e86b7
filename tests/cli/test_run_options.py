"""Runs on the command line, on cards and in ledgers: epochs, batch sizes, groups, truncation and allocation."""

import json
import shlex

import pytest

import psidp
from psidp.bridges.dp_accounting import to_dp_event
from psidp.ledger.event import agrees, price, priced_run
from psidp.present.card.events import in_words
from psidp.present.card.formats import written
from psidp.present.card.record import Card, card

RUNS = [
    psidp.RandomAllocation(2.0, 4, 2),
    psidp.DPSGD(2.0, 0.2, 3, group=2),
    psidp.DPSGD(1.0, 0.01, 1000, truncated_batch_size=900, dataset_size=60_000),
    psidp.DPSGD(2.0, 0.2, 3, adjacency="replace-one"),
    psidp.BandMF(2.0, 0.1, 30, 4),
    psidp.BandMF(2.0, 0.1, 30, 4, adjacency="zero-out"),
    psidp.FixedOrder(4.0, 3, 60),
    psidp.FixedOrder(4.0, 3, 60, adjacency="replace-one"),
]


def test_account_reads_epochs_and_batch_sizes(run):
    base = ["account", "--noise-multiplier", "1", "--json"]
    one = json.loads(run(*base, "--batch-size", "600", "--dataset-size", "60000", "--epochs", "10")[1])["runs"][0]
    other = json.loads(run(*base, "--sampling-rate", "0.01", "--steps", "1000")[1])["runs"][0]
    assert one == other
    assert one["epsilon"][0]["upper"] == psidp.account(psidp.DPSGD(1.0, 0.01, 1000)).epsilon(1e-5).upper
    sweep = run(*base[:-1], "--batch-size", "60", "--batch-size", "600", "--dataset-size", "6000", "--epochs", "2")[1]
    assert "200" in sweep
    assert "20" in sweep


def test_account_says_what_kind_of_run_it_was(run):
    out = run("account", "--noise-multiplier", "2", "--batches", "4", "--epochs", "2", "--delta", "1e-6")[1]
    upper = psidp.account(psidp.RandomAllocation(2.0, 4, 2)).epsilon(1e-6).upper
    assert repr(upper) in out
    assert "random allocation, add-remove, per record" in " ".join(out.split())
    rows = run("account", "--noise-multiplier", "2", "--batches", "4", "--epochs", "2", "--csv", "-")[1].splitlines()
    assert rows[0] == "noise_multiplier,batches,epochs,delta,epsilon_lower,epsilon_upper,method"
    assert rows[1].startswith("2.0,4,2,1e-05,")
    flags = ["--sampling-rate", "0.01", "--steps", "10", "--truncated-batch-size", "40", "--dataset-size", "1000"]
    out = " ".join(run("account", "--noise-multiplier", "1", *flags)[1].split())
    assert "Some batch is truncated with a probability of at most" in out
    flags = ["--sampling-rate", "0.2", "--steps", "3", "--adjacency", "replace-one"]
    assert "twice the clipping norm" in " ".join(run("account", "--noise-multiplier", "1", *flags)[1].split())
    told = json.loads(run("account", "--noise-multiplier", "2", "--batches", "4", "--epochs", "2", "--json")[1])
    assert (told["runs"][0]["batches"], told["runs"][0]["epochs"]) == (4, 2)
    told = json.loads(run("account", "--noise-multiplier", "2", *flags[:4], "--group", "2", "--json")[1])["runs"][0]
    assert (told["group"], told["unit"]) == (2, "group of 2 records")


def test_calibrate_reads_every_kind_of_run(run):
    target = ["--epsilon", "2", "--delta", "1e-5", "--json"]
    base = json.loads(run("calibrate", "--sampling-rate", "0.01", "--steps", "1000", *target)[1])
    again = ["--batch-size", "600", "--dataset-size", "60000", "--epochs", "10"]
    assert json.loads(run("calibrate", *again, *target)[1]) == base
    allocated = json.loads(run("calibrate", "--batches", "4", "--epochs", "2", *target)[1])
    assert (allocated["batches"], allocated["epochs"]) == (4, 2)
    noise = allocated["noise_multiplier"]
    assert psidp.account(psidp.RandomAllocation(noise, 4, 2)).epsilon(1e-5).upper <= 2.0
    assert psidp.account(psidp.RandomAllocation(0.998 * noise, 4, 2)).epsilon(1e-5).lower > 2.0
    plain = ["--sampling-rate", "0.2", "--steps", "3"]
    replaced = json.loads(run("calibrate", *plain, "--adjacency", "replace-one", *target)[1])["noise_multiplier"]
    made = psidp.DPSGD(replaced, 0.2, 3, adjacency="replace-one")
    assert 1.99 < psidp.account(made).epsilon(1e-5).upper <= 2.0
    group = json.loads(run("calibrate", *plain, "--group", "3", *target)[1])
    assert group["group"] == 3
    assert 1.99 < psidp.account(psidp.DPSGD(group["noise_multiplier"], 0.2, 3, group=3)).epsilon(1e-5).upper <= 2.0


@pytest.mark.parametrize("event", RUNS, ids=repr)
def test_a_card_tells_the_run_in_words_and_can_be_read_and_made_again(event, run):
    made = card(event, date="2026-01-31")
    assert made.events == (event,)
    assert Card.from_json(made.to_json()) == made
    assert made.epsilon == psidp.account(event).epsilon(1e-5).upper
    assert event.adjacency == "replace-one" or in_words(event) in written(made, "md")
    code, out, _ = run(*shlex.split(made.to_dict()["made"]["command"])[1:], "--format", "json")
    assert code == 0
    assert Card.from_json(out) == made


def test_a_card_of_several_events_lists_them(run):
    events = [psidp.DPSGD(1.0, 0.01, 1000), psidp.Guarantee(0.1)]
    shown = written(card(psidp.account(events), date="2026-01-31"), "md")
    for event in events:
        assert in_words(event) in shown
    typed = '[{"noise_multiplier": 1, "batch_size": 10, "dataset_size": 1000, "epochs": 10}, {"psi": 0.1}]'
    code, out, _ = run("card", "--events", typed, "--format", "json")
    assert code == 0
    assert Card.from_json(out).events == tuple(events)


@pytest.mark.parametrize("event", RUNS, ids=repr)
def test_a_ledger_charges_a_run_at_a_price_that_anybody_can_recompute(event, tmp_path):
    cost, stored = priced_run(event, 1e-6)
    assert cost == psidp.account(event).guarantee(1e-6)
    assert price(json.loads(json.dumps(stored)), adjacency=event.adjacency, unit=event.unit) == cost
    assert agrees(stored, cost)
    less = psidp.Guarantee(0.9 * cost.psi, 1e-6, event.adjacency, event.unit)
    assert not agrees(stored, less)
    ledger = psidp.Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("training", 50.0, 1e-5, actor="a test", purpose="training", adjacency=event.adjacency, unit=event.unit)
    with ledger.spend("training", event, purpose="a model", kappa=1e-6):
        pass
    assert ledger.verify() == ledger.head()


def test_other_libraries_get_only_what_means_the_same():
    correlated = psidp.BandMF | psidp.FixedOrder  # these have one: tests/accounting/test_correlated.py
    for event in (event for event in RUNS if not isinstance(event, correlated)):
        with pytest.raises(ValueError, match="has a DpEvent of the same meaning"):
            to_dp_event([event])
