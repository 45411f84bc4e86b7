"""Two neighbouring trainings, killed at lines of a step. Run as a script: folder, order, stride, first line.

Victims and those who go on are forks of a process that has done nothing but import. A victim takes three steps, and in
the fourth it dies by SIGKILL at one line of psidp, the first time it comes there; then the run goes on to its end. All
is done twice, with one record and with that record blanked: same coins, same line, and noise replaced, after it was
really drawn, by the same whole numbers, so that what was encoded can be compared in exact integers.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import psidp
from psidp.bridges.torch import PrivateTrainer
from psidp.bridges.torch.step.clipping import ClippedTotals
from psidp.bridges.torch.training import batches, correlated, run_state
from psidp.bridges.torch.training.batches import CyclicBatches, class_of
from psidp.bridges.torch.training.correlated import CorrelatedNoise

RECORDS, BANDS, CLIP, BLANK, KILLED = 24, 3, 0.7, 5, 3
ORDERS = {
    "sampled": {"bands": BANDS, "steps": 7, "sampling_rate": 0.25, "ids": range(RECORDS), "adjacency": "zero-out"},
    "fixed": {"bands": BANDS, "epochs": 2, "sampling_rate": 1 / 3, "order": "fixed"},
}
LENGTH = {"sampled": 7, "fixed": 6}
OURS = str(Path(psidp.__file__).parent)


class World:
    """One of the two data sets: its folder, and beside it what was encoded and what is secret."""

    def __init__(self, folder, order, present, line):
        self.folder, self.order, self.present, self.line = Path(folder), order, present, line
        self.folder.mkdir()
        self.encoded, self.secrets = (self.folder.with_suffix(s) for s in (".encoded", ".secrets"))

    def trainer(self):
        """The trainer that every process makes anew."""
        torch.set_num_threads(1)
        torch.manual_seed(self.line)
        model, features = nn.Linear(4, 2), torch.randn(RECORDS, 4)
        weights = torch.ones(RECORDS, 1)
        weights[BLANK] = float(self.present)
        return PrivateTrainer(
            model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
            lambda out, target: (target[:, 1:] * (out.sum(1, keepdim=True) - target[:, :1]) ** 2).sum(),
            (features, torch.cat([features.sum(1, keepdim=True), weights], dim=1)),
            clip=CLIP, noise_multiplier=2.0, every=1, micro_batch=4, checkpoint=self.folder / "run.pt",
            ledger=psidp.Ledger(self.folder / "ledger.db"), budget="models", **ORDERS[self.order],
        )  # fmt: skip

    def scripted(self):
        """Same names, coins and releases in both worlds; what is encoded and kept goes beside the folder."""
        step, real, taken, at = [0], correlated.add_noise_, ClippedTotals.taken, CorrelatedNoise.at
        of = CyclicBatches.of

        def named(size):
            return np.random.default_rng(self.line).bytes(size).hex()

        def said(noise, number):
            step[0] = number
            at(noise, number)

        def coins(of_step, number):
            step[0] = number
            return of(of_step, number)

        def tossed(size, rate):
            return np.flatnonzero(np.random.default_rng([self.line, step[0]]).random(size) < rate)

        def replayed(tensor, sigma, grid=None):
            _append(self.encoded, [step[0], [int(m) for m in tensor.tolist()]])
            noisy = real(tensor, sigma, grid=grid)
            rows = np.random.default_rng([1, self.line, step[0]]).integers(-(2**38), 2**38, len(tensor))
            return noisy.copy_(torch.from_numpy(rows.astype(float)))

        def kept(totals):
            units = taken(totals)
            _append(self.secrets, units.tolist())
            return units

        run_state.token_hex, correlated.add_noise_, batches.poisson_batch = named, replayed, tossed
        CorrelatedNoise.at, CyclicBatches.of, ClippedTotals.taken = said, coins, kept

    def victim(self, _):
        """Three steps, and one in which it dies at the line of this number, in the order in which lines first run."""
        self.scripted()
        trainer, seen = self.trainer(), set()

        def trace(frame, event, _):
            if not frame.f_code.co_filename.startswith(OURS):
                return None
            if event == "line":
                seen.add((frame.f_code.co_filename, frame.f_lineno))
            if len(seen) == self.line:
                for row in secrets_of(trainer._noise):
                    _append(self.secrets, row)
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        def watch(progress):
            if progress.started == KILLED:
                sys._getframe(1).f_trace = trace
                sys.settrace(trace)
            elif progress.started > KILLED:
                sys.settrace(None)

        trainer.fit(watch=watch)

    def goes_on(self, pipe):
        """The run to its end; how many steps counted, and what all of it cost."""
        self.scripted()
        trainer = self.trainer()
        counted, done = trainer.training.started, trainer.fit()
        strategy, fineness = trainer._noise.strategy, trainer._step._fineness
        bound = int(CLIP / 2.0 ** (np.frexp(CLIP)[1] - 1 - fineness))
        most = strategy.squared(correlated.ONCE) * bound**2
        told = {"counted": counted, "finished": done.finished, "psi": done.psi, "steps": done.started, "most": most}
        os.write(pipe, json.dumps(told | {"left": sum(map(len, secrets_of(trainer._noise)))}).encode())

    def killed(self):
        """What became of the run, and whether any file held a secret after the kill, and in the end."""
        with psidp.Ledger(self.folder / "ledger.db") as ledger:
            ledger.open("models", psi=9.0, kappa=1e-8, actor="Ann", purpose="tests", adjacency="zero-out")
        _, code = forked(self.victim)
        leaked, drawn = self.leaks(), len(_lines(self.encoded))
        said, _ = forked(self.goes_on)
        told = json.loads(said)
        assert drawn <= told["counted"] <= drawn + 1, "a step that was drawn was not counted"
        with psidp.Ledger(self.folder / "ledger.db") as ledger:
            entries = list(ledger.entries())
            ledger.verify()
        spent = [entry.psi for entry in entries if entry.state == "spent"]
        told["paid"] = spent == [told["psi"]] and entries[-1].details()["steps"] == told["steps"]
        return code, told | {"leaks": leaked + self.leaks()}, _lines(self.encoded)

    def leaks(self):
        """Pieces of secret rows, two numbers long, that are in a file of the run, in any of four forms."""
        files = b"".join(path.read_bytes() for path in self.folder.iterdir())
        pairs = [row[i : i + 2] for row in _lines(self.secrets) for i in range(0, len(row) - 1, 2)]
        large = [pair for pair in pairs if min(map(abs, pair)) > 2**12]
        forms = (np.int32, np.int64, np.float32, np.float64)
        assert large
        return sum(np.array(pair).astype(form).tobytes() in files for pair in large for form in forms)


def secrets_of(noise):
    """What correlated noise keeps, row by row."""
    return [row.tolist() for row in noise._ring if row.any()]


def forked(work):
    """What a fork wrote before it ended, and how it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        work(writer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        said = lines.read()
    return said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _append(path, values):
    with path.open("a") as file:
        file.write(json.dumps(values) + "\n")


def _lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def distance(worlds, order, line, most):
    """The largest part of the bound that the encoded difference has in any block; steps come once each."""
    rows = [dict(map(tuple, world)) for world in worlds]
    assert all(len(world) == len(once) for world, once in zip(worlds, rows, strict=True)), "a step was drawn twice"
    assert rows[0].keys() == rows[1].keys(), "the worlds went apart"
    squares = [0] * LENGTH[order]
    for step in rows[0]:
        squares[step] = sum((a - b) ** 2 for a, b in zip(rows[0][step], rows[1][step], strict=True))
    if order == "fixed":
        return sum(squares) / (2 * most)
    first = class_of(BLANK, BANDS, np.random.default_rng(line).bytes(16).hex())
    assert not any(squares[:first])
    return max(sum(squares[start : start + BANDS]) for start in range(first, len(squares), BANDS)) / most


def main(folder, order, stride, first):
    line, found = first, {"kills": 0, "leaks": 0, "unpaid": 0, "lost": 0, "most": 0.0, "apart": 0}
    while True:
        worlds = [World(f"{folder}/{line}-{present}", order, present, line).killed() for present in (True, False)]
        codes = {code for code, _, _ in worlds}
        assert len(codes) == 1, "one world was killed, the other not"
        told = [one for _, one, _ in worlds]
        found["leaks"] += sum(one["leaks"] + one["left"] for one in told)
        found["unpaid"] += sum(not (one["paid"] and one["finished"]) for one in told)
        found["lost"] += LENGTH[order] - len(worlds[0][2])
        part = distance([encoded for _, _, encoded in worlds], order, line, told[0]["most"])
        found["most"], found["apart"] = max(found["most"], part), found["apart"] + (part > 0.0)
        if codes == {0}:
            break
        assert codes == {-signal.SIGKILL}
        found["kills"], line = found["kills"] + 1, line + stride
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
