"""The errors a program may catch: each comes back whole from another process."""

import pickle

import pytest

from psidp.errors import BudgetExceededError, EngineError, LedgerBusyError, MissingExtraError, TamperedLedgerError

ERRORS = [
    EngineError("duckdb", "IOException"),
    MissingExtraError("DuckDB", "db"),
    BudgetExceededError("too much", budget="survey", asked=(0.9, 0.0), left=(0.8, 0.0), sigma=1.25),
    TamperedLedgerError("entry 3 is not what was written.", 3),
    LedgerBusyError("busy"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_whole_from_another_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
