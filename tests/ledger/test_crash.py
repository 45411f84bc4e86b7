"""Kill between statements, reopen, count; kill at random; and let many spend at once. `./dev fuzz` kills at all."""

import signal
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

import psidp
from psidp import Guarantee, Ledger
from scripts import script


def test_kills_at_random_moments_lose_no_spend_and_leave_no_half_written_entry(sqlite_url):
    outcome = script("ledger/crash.py", "random", sqlite_url, 25, 20)
    assert outcome["kills"] == 25
    assert outcome["spent"] >= outcome["noises"] > 25


def test_kills_of_clients_lose_no_spend_on_postgresql(server):
    outcome = script("ledger/crash.py", "random", server.place("killed"), 10, 20)
    assert outcome["spent"] >= outcome["noises"] > 0


def test_kills_between_two_statements_lose_nothing(tmp_path):
    assert script("ledger/crash.py", "every", tmp_path / "NUMBER.db", 7, 3)["kills"] > 8


def test_a_server_that_crashes_loses_no_spend(server):
    url = server.place("crashed")
    ledger = Ledger(url)
    ledger.open("survey", psi=10.0, actor="Ann", purpose="a test")
    for _ in range(5):
        with ledger.spend("survey", Guarantee(0.1), purpose="a test"):
            pass
    head = ledger.head()
    server.stop(signal.SIGQUIT)
    with pytest.raises(psidp.errors.LedgerUnavailableError):
        Ledger(url, patience=1.0).remaining("survey")
    server.start()
    assert ledger.verify(head) == head
    with ledger.spend("survey", Guarantee(0.1), purpose="afterwards"):
        pass
    ledger.dispose()


@pytest.mark.parametrize("psi", ["0.1", "random"])
def test_thirty_two_processes_never_overspend_and_nobody_is_refused_wrongly(ledger, url, psi):
    cap = psidp.compose([Guarantee(0.1)] * 16)
    ledger.open("race", psi=cap.psi, actor="Ann", purpose="a race")
    ledger.dispose()
    outcome = script("ledger/race.py", url, "race", 32, psi)
    accepted = [Fraction(p) ** 2 for word, p in outcome if word == "accepted"]
    refused = [Fraction(p) ** 2 for word, p in outcome if word == "refused"]
    left = Fraction(cap.psi) ** 2 - sum(accepted)
    assert left >= 0
    assert len(accepted) + len(refused) == len(outcome), "nobody waited in vain"
    assert all(ask > left for ask in refused), "what was refused would not fit even at the end"
    assert psi == "random" or len(accepted) == 16
    assert sum(Fraction(e.psi) ** 2 for e in ledger.entries()) == sum(accepted)
    ledger.verify()


def test_threads_of_one_process_share_a_ledger(survey):
    def attempt(_):
        try:
            with survey.spend("survey", Guarantee(0.25), purpose="a thread"):
                return True
        except psidp.errors.BudgetExceededError:
            return False

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(attempt, range(24))) == 16
    survey.verify()


def test_of_many_who_open_a_new_ledger_at_once_one_succeeds(url):
    outcome = script("ledger/race.py", url, "race", 8, "open")
    assert sorted(word for word, _ in outcome) == ["accepted"] + ["refused"] * 7
    assert Ledger(url).verify().id == 1
