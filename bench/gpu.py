"""Exact noise on a GPU: kernels against NumPy bit for bit, their speed beside torch's unsafe noise, and their law.

Also a script of its own: python bench/gpu.py [check] [speed] [law], each part by itself, wherever a CUDA device is.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "src")]

from bench.device import every, milliseconds, named
from bench.timing import Report

SIGMA = 1.3
GRID = 2.0**-16
SHORT = 2.0**-7
FINER = 2.0**-20
DEVICE = "cuda"
SIZE = 2**28
BATCHES = 40
BLOCKS = (64, 128, 256)
CIPHERS = (20, 12, 8)


def run(full: bool, seed: int) -> list[Report]:
    """All parts, or one line where there is no GPU."""
    return every("Noise on a GPU", PARTS, seed)


def check(seed: int) -> Report:
    """Kernels against the NumPy path on the same key stream, bit for bit."""
    import torch

    from psidp.noise.gaussian import RoundedGaussian

    report = Report("Kernels against NumPy on the same key stream: entries that differ")
    cases = [
        (torch.float32, SIGMA, GRID, 20, 128, 2**20 + 77),
        (torch.float32, SIGMA, FINER, 20, 128, 2**19 + 77),
        (torch.float32, 1.9, 2.0**-20, 12, 256, 2**18 + 1),
        (torch.float32, 1.0, 1.0, 8, 64, 2**18),
        (torch.float32, 1e-3, 2.0**-30, 20, 128, 2**19 + 5),
        (torch.float32, SIGMA, 2.0**-26, 20, 128, 2**18 + 3),
        (torch.float32, 1e30, 2.0**80, 20, 128, 2**16 + 3),
        (torch.bfloat16, SIGMA, GRID, 20, 128, 2**18 + 9),
        (torch.bfloat16, SIGMA, SHORT, 20, 128, 2**21 + 9),
        (torch.bfloat16, 1.999, SHORT, 20, 128, 2**20 + 3079),
        (torch.float32, SIGMA, SHORT, 20, 128, 2**20 + 5),
        (torch.float64, SIGMA, 2.0**-24, 20, 128, 2**18 + 9),
        (torch.float64, 1e-200, 2.0**-690, 20, 32, 2**16 + 9),
        (torch.float64, SIGMA, 2.0**-29, 12, 128, 2**18 + 9),
    ]
    for dtype, sigma, grid, rounds, block, n in cases:
        began = time.perf_counter()
        torch.manual_seed(seed)
        x = _hostile(torch, n, sigma, grid, dtype)
        differ, left = _differing(torch, x, RoundedGaussian(sigma, grid), rounds, block)
        name = f"{dtype}, sigma {sigma:g}, grid 2^{math.log2(grid):g}, ChaCha{rounds}, block {block}, {n:,} entries"
        note = f"{left} settled by the host; {time.perf_counter() - began:.1f} s"
        report.add(name, differ, "differ", at_most=0, note=note)
    return report


def _hostile(torch: Any, n: int, sigma: float, grid: float, dtype: Any) -> Any:
    """Values of all sizes, halves of the grid among them, and those that are no numbers."""
    x = torch.randn(n, dtype=torch.float64) * sigma * 10.0 ** torch.randint(-3, 6, (n,))
    x[: n // 4] = torch.randint(-1000, 1000, (n // 4,)) * (grid / 2)
    x[n // 4 : n // 2] = torch.randint(-(2**25), 2**25, (n // 2 - n // 4,)) * (grid / 2)
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, -1e-40, 3e38, -3e38, 2.0**23 * grid, 2.0**24 * grid]
    x[: len(special)] = torch.tensor(special, dtype=torch.float64)
    return x.to(dtype)


def _differing(torch: Any, x: Any, noise: Any, rounds: int, block: int) -> tuple[int, int]:
    """How many entries of kernel and NumPy differ in a bit, and how many the host settled."""
    from psidp.bridges.torch.noise import launch
    from psidp.bridges.torch.noise.chacha import Key
    from psidp.bridges.torch.noise.host_fallback import settled_values
    from psidp.bridges.torch.noise.replay import replayed

    key, shape = Key(), launch.Shape(block=block)
    layout = launch.layout_of(noise, x, shape, rounds)
    noisy = x.to(DEVICE, copy=True)
    left = launch.add(noisy, noise, key, layout, shape)
    narrow = torch.float64 if x.dtype == torch.float64 else torch.float32
    bits = {torch.float64: torch.int64, torch.float32: torch.int32, torch.bfloat16: torch.int16}[x.dtype]

    def same_type(values: Any) -> Any:
        return torch.as_tensor(values, dtype=torch.float64).to(narrow).to(x.dtype).view(bits)

    expected = same_type(replayed(noise, key, layout, x.to(narrow).numpy()))
    got = noisy.cpu().view(bits)
    suspect = torch.nonzero(expected != got).reshape(-1).tolist()
    if 0 < len(suspect) < 10_000:  # where NumPy drew a word more, the integers are the judge
        exact = same_type(settled_values(noise, key, layout, suspect, x[suspect].double().tolist()))
        return int((exact != got[suspect]).sum()), left
    return len(suspect), left


def speed(seed: int) -> Report:
    """Billions of values a second at 2^28, medians by device events, everything settled."""
    import torch

    torch.manual_seed(seed)
    report = Report(f"Speed, {SIZE:,} float32 values, medians by device events ({torch.cuda.get_device_name()})")
    x = torch.randn(SIZE, device=DEVICE)
    other = torch.empty_like(x)
    yardstick = _clocked(torch, lambda: x + torch.randn_like(x))
    for name, call in {
        "write alone: fill_": lambda: other.fill_(1.0),
        "read and write: copy_": lambda: other.copy_(x),
        "torch.randn_like(x)": lambda: torch.randn_like(x),
        "x.add_(torch.randn_like(x))": lambda: x.add_(torch.randn_like(x)),
    }.items():
        _line(report, name, _clocked(torch, call), yardstick)
    _line(report, "x + torch.randn_like(x)", yardstick, yardstick)
    _side_by_side(torch, report, x)
    _side_by_side(torch, report, x.to(torch.bfloat16))
    for name, call in _ours(torch, x):
        try:
            _line(report, name, _clocked(torch, call), yardstick, note=f"{call()}")
        except Exception as error:
            report.say(name, f"{type(error).__name__}: {str(error)[:200]}")
    again = _clocked(torch, lambda: x + torch.randn_like(x))
    _line(report, "x + torch.randn_like(x), again", again, yardstick)
    _public(torch, report, x, yardstick)
    return report


def _side_by_side(torch: Any, report: Report, x: Any) -> None:
    """Ours and torch's in turn, many times: the median of each, and their ratio."""
    from psidp.bridges.torch import add_noise_

    grid = GRID if x.dtype == torch.float32 else SHORT
    calls = {
        "torch": lambda: x + torch.randn_like(x),
        "ChaCha20": _adding(torch, x, 20, 128, grid=grid),
        "ChaCha12": _adding(torch, x, 12, 128, grid=grid),
        "add_noise_": lambda: add_noise_(x, SIGMA),
    }
    for behind in (False, True):
        times: dict[str, list[float]] = {name: [] for name in calls}
        for round_ in range(103):
            for name, call in calls.items():
                ms = milliseconds(torch, call, behind)
                times[name] += [ms] if round_ >= 3 else []
        middle = {name: median(several) for name, several in times.items()}
        for name in list(calls)[1:]:
            note = f"{middle[name]:.3f} against {middle['torch']:.3f} ms, medians of 100 in turn"
            where = "behind other work" if behind else "alone"
            what = f"{name}, {x.dtype}, all settled, {where}, over x + torch.randn_like(x)"
            report.add(what, middle[name] / middle["torch"], "x", at_most=1.0, note=note)


def _ours(torch: Any, x: Any) -> Iterator[tuple[str, Callable[[], str]]]:
    """Every cipher with every shape, a finer grid, the fast kernel alone, and shapes of the slow kernel."""
    for rounds in CIPHERS:
        for block in BLOCKS:
            yield f"ChaCha{rounds}, block {block}", _adding(torch, x, rounds, block)
    yield "ChaCha20, block 128, grid 2^-20", _adding(torch, x, 20, 128, grid=FINER)
    for rounds in CIPHERS:
        yield f"ChaCha{rounds}, block 128, fast kernel alone", _fast_alone(torch, x, rounds, 128)
    for lanes, programs in ((32, 2112), (64, 4224)):
        name = f"ChaCha20, block 128, slow kernel {lanes} lanes x {programs}"
        yield name, _adding(torch, x, 20, 128, lanes, programs)


def _adding(
    torch: Any, x: Any, rounds: int, block: int, lanes: int = 32, programs: int = 8448, grid: float = GRID
) -> Callable[[], str]:
    """A call that adds noise to x and says how many entries the host settled."""
    from psidp.bridges.torch.noise import launch
    from psidp.bridges.torch.noise.chacha import Key
    from psidp.noise.gaussian import RoundedGaussian

    noise, shape = RoundedGaussian(SIGMA, grid), launch.Shape(block, lanes, programs)
    layout = launch.layout_of(noise, x, shape, rounds)
    return lambda: f"host settled {launch.add(x, noise, Key(), layout, shape)}"


def _fast_alone(torch: Any, x: Any, rounds: int, block: int) -> Callable[[], str]:
    """The fast kernel without its settling, and the share of lanes that it marks."""
    from psidp.bridges.torch.noise import launch
    from psidp.bridges.torch.noise.chacha import Key
    from psidp.bridges.torch.noise.tables import tables
    from psidp.noise.gaussian import RoundedGaussian

    noise, shape = RoundedGaussian(SIGMA, GRID), launch.Shape(block)
    layout, lookup = launch.layout_of(noise, x, shape, rounds), tables(SIGMA, GRID, x.device)
    marked = torch.empty(x.numel() // 8, dtype=torch.int64, device=x.device)
    count = torch.zeros(2, dtype=torch.int32, device=x.device)

    def call() -> str:
        count.zero_()
        launch._narrow(x, noise, (*Key().arguments(), 1), layout, shape, lookup, marked, count)
        return ""

    def told() -> str:
        call()
        marks = marked[: int(count[0])] & 0xFFFFFF
        values = sum(int(((marks >> k) & 1).sum()) for k in range(16))
        return f"marked {values / x.numel():.3e} of the values"

    told.fast = call  # type: ignore[attr-defined]
    return told


def _public(torch: Any, report: Report, x: Any, yardstick: float) -> None:
    """add_noise_ as users call it, for each type, by the wall clock too."""
    from psidp.bridges.torch import add_noise_

    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        y = x[: SIZE // 2].to(dtype)
        base = _clocked(torch, lambda y=y: y + torch.randn_like(y))
        _line(report, f"x + torch.randn_like(x), {dtype}, 2^27", base, base, n=SIZE // 2)
        _line(
            report, f"add_noise_, {dtype}, 2^27", _clocked(torch, lambda y=y: add_noise_(y, SIGMA)), base, n=SIZE // 2
        )
    for exponent in (10, 16, 20, 24):
        y = torch.randn(2**exponent, device=DEVICE)
        add_noise_(y, SIGMA)
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(50):
            add_noise_(y, SIGMA)
        report.add(f"add_noise_, 2^{exponent} entries, wall clock", (time.perf_counter() - began) / 50 * 1e6, "us")


def _clocked(torch: Any, call: Callable[[], Any], rounds: int = 15) -> float:
    """Median milliseconds by device events, after a warm-up."""
    call = getattr(call, "fast", call)
    for _ in range(3):
        call()
    return median(milliseconds(torch, call) for _ in range(rounds))


def _line(report: Report, name: str, ms: float, yardstick: float, note: str = "", n: int = SIZE) -> None:
    """One time as a speed, beside the yardstick."""
    report.add(name, n / ms / 1e6, "G values/s", note=f"{ms:.3f} ms ({ms / yardstick:.2f} x) {note}")


def law(seed: int) -> Report:
    """Ten billion draws of noise alone, counted step by step: Kolmogorov-Smirnov, chi-square, tails."""
    import torch

    counts, total = _counted(torch)
    report = Report(f"Law of {total:,} draws, sigma {SIGMA}, grid 2^-16, counted at every step of the grid")
    half = counts.numel() // 2
    edges = (torch.arange(counts.numel() + 1, dtype=torch.float64, device=DEVICE) - half - 0.5) * (GRID / SIGMA)
    for name, stretch in (("", 1.0), (", were sigma 1e-4 larger", 1.0 / 1.0001)):
        below = torch.special.ndtr(edges * stretch)
        gap = float((torch.cumsum(counts, 0) / total - below[1:]).abs().max())
        report.say(f"KS{name}", f"D {gap:.3e}, p {_kolmogorov(gap * math.sqrt(total)):.4g}")
        statistic, freedom = _chi_square(torch, counts, below, total)
        p = _chi_square_tail(torch, statistic, freedom)
        report.say(f"chi-square{name}", f"{statistic:.1f} with {freedom} degrees of freedom, p {p:.4g}")
    low = counts.view(-1, 256).sum(0).double()
    statistic = float(((low - total / 256) ** 2 / (total / 256)).sum())
    p = _chi_square_tail(torch, statistic, 255)
    report.say("low 8 bits of the steps", f"{statistic:.1f} with 255 degrees of freedom, p {p:.4g}")
    steps = (torch.arange(counts.numel(), device=DEVICE) - half).abs()
    for sigmas in (3.6, 4, 5, 6, 6.5):
        first = math.floor(sigmas * SIGMA / GRID) + 1
        seen, expected = int(counts[steps >= first].sum()), total * math.erfc((first - 0.5) * GRID / SIGMA / 2**0.5)
        z = (seen - expected) / math.sqrt(expected)
        report.say(f"beyond {sigmas} sigma", f"{seen:,} seen, {expected:,.2f} expected, {z:+.2f} standard errors")
    return report


def _counted(torch: Any) -> tuple[Any, int]:
    """How often each number of steps came, and how many draws there were."""
    from psidp.bridges.torch import add_noise_

    half, total = 2**20, 0
    counts = torch.zeros(2 * half, dtype=torch.int64, device=DEVICE)
    x = torch.empty(2**27, device=DEVICE)
    for _ in range(2 * BATCHES):
        add_noise_(x.zero_(), SIGMA, grid=GRID)
        places = (x * (1.0 / GRID)).to(torch.int32).add_(half).clamp_(0, 2 * half - 1)
        counts += torch.bincount(places, minlength=2 * half)
        total += x.numel()
    return counts, total


def _chi_square(torch: Any, counts: Any, below: Any, total: int) -> tuple[float, int]:
    """Over 8192 stretches of the axis; those at the ends that expect fewer than 20 are taken together."""
    seen = counts.view(8192, -1).sum(1).double()
    expected = (below[:: counts.numel() // 8192].diff() * total).double()
    fit = expected >= 20
    ends_seen, ends_expected = seen[~fit].sum(), expected[~fit].sum()
    statistic = ((seen[fit] - expected[fit]) ** 2 / expected[fit]).sum() + (
        ends_seen - ends_expected
    ) ** 2 / ends_expected
    return float(statistic), int(fit.sum())


def _chi_square_tail(torch: Any, statistic: float, freedom: int) -> float:
    """Chance that chi-square exceeds the statistic."""
    half = torch.tensor([freedom / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def _kolmogorov(x: float) -> float:
    """Chance that the Kolmogorov statistic exceeds x."""
    if x < 0.2:
        return 1.0
    return min(1.0, max(0.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101))))


PARTS = {"check": check, "speed": speed, "law": law}

if __name__ == "__main__":
    named(PARTS)
