"""The key stream: uniform words, none of them read twice, whatever forks or threads do."""

import inspect
import multiprocessing
import os
import threading

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from psidp.noise import stream
from psidp.noise.stream import BLOCK, KeyStream


def drawn(source, n):
    words = np.empty(n, np.int64)
    source.fill(words)
    return words


def read_in_child(source, n):
    """What a forked child reads from the stream it inherited."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(send, drawn(source, n).tobytes())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        words = np.frombuffer(pipe.read(), np.int64)
    os.waitpid(child, 0)
    return words


def test_the_stream_is_aes_256_in_counter_mode_under_the_systems_bytes(monkeypatch):
    key = bytes(range(32))
    monkeypatch.setattr(os, "urandom", lambda n: key[:n])
    reference = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * 3 * BLOCK))
    source = KeyStream()
    words = np.concatenate([drawn(source, n) for n in (1, 5, BLOCK - 6, 2 * BLOCK)])
    assert words.tobytes() == reference


def test_nobody_can_seed_it():
    assert list(inspect.signature(KeyStream).parameters) == []
    assert list(inspect.signature(KeyStream.rekey).parameters) == ["self"]


def test_a_key_serves_a_bounded_number_of_bytes(monkeypatch):
    keys = []
    fresh = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: keys.append(n) or fresh(n))
    monkeypatch.setattr(stream, "KEY_LIFE", 8 * BLOCK)
    source = KeyStream()
    assert keys == [32]
    drawn(source, BLOCK)
    assert keys == [32]
    drawn(source, 2 * BLOCK)
    assert keys == [32] * 3


def test_two_children_and_their_parent_share_no_word():
    source = KeyStream()
    drawn(source, 1000)
    first, second = read_in_child(source, 4000), read_in_child(source, 4000)
    parent = drawn(source, 4000)
    assert first.size == second.size == 4000
    everything = np.concatenate([first, second, parent])
    assert np.unique(everything).size == everything.size  # a chance repeat has probability below 1e-11


def test_a_fork_that_python_never_saw_is_noticed_by_its_process_number(monkeypatch):
    source = KeyStream()
    before = source._cipher
    monkeypatch.setattr(os, "getpid", lambda: -1)
    drawn(source, 1)
    assert source._cipher is not before


def test_a_grandchild_with_a_reused_process_number_is_noticed_by_the_fork_count(monkeypatch):
    source = KeyStream()
    before = source._cipher
    monkeypatch.setattr(stream, "_forks", stream._forks + 1)
    drawn(source, 1)
    assert source._cipher is not before


def test_threads_with_a_stream_each_share_no_word():
    parts = []

    def work():
        parts.append(drawn(KeyStream(), 4000))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = np.concatenate(parts)
    assert np.unique(everything).size == everything.size == 32000


def test_spawned_processes_share_no_word():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        parts = pool.map(_spawned, range(2))
    assert np.unique(np.concatenate(parts)).size == 2000


def _spawned(_):
    return drawn(KeyStream(), 1000)


def test_bits_are_balanced():
    """Each of the 64 bit positions, 2^20 words; a fair stream fails once in 10^7 runs (6.3 sigma)."""
    n = 2**20
    words = drawn(KeyStream(), n).view(np.uint64)
    ones = np.array([int(((words >> np.uint64(k)) & np.uint64(1)).sum()) for k in range(64)])
    assert np.abs(ones - n / 2).max() < 6.3 * np.sqrt(n) / 2
