"""Streams of tables killed at a sample of the lines of publish, on both ledgers.

A kill costs two processes that open engine and ledger; `./dev fuzz` takes all lines.
"""

from scripts import script


def unharmed(outcome, kills):
    """Each stream was paid for once and has two periods, stored once and never changed; the last was not killed."""
    assert outcome["kills"] > kills
    assert (outcome["changed"], outcome["twice"], outcome["last"]) == (0, 0, 0)
    assert (outcome["streams"], outcome["answers"]) == (outcome["kills"] + 1, 2 * outcome["kills"] + 2)


def test_killed_at_lines_of_publish_and_resumed_it_has_the_same_numbers_at_one_price(sqlite_url):
    unharmed(script("tables/stream_kills.py", sqlite_url, 23, 1), 3)


def test_killed_at_lines_of_publish_on_postgresql(server):
    unharmed(script("tables/stream_kills.py", server.place("stream_killed"), 41, 3), 2)
