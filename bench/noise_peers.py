"""The peers' Gaussian noise, timed in their own environment; prints JSON for bench/noise.py.

usage: noise_peers.py ENTRIES SIGMA
"""

import json
import sys
import time

import numpy as np


def best(call, entries, rounds):
    """CPU seconds an entry in the best of some rounds."""
    taken = []
    for _ in range(rounds):
        start = time.thread_time()
        call()
        taken.append(time.thread_time() - start)
    return min(taken) / entries


def numpy_rows(n, sigma):
    """The yardstick, in this environment."""
    rng = np.random.default_rng()
    x = np.zeros(n)
    yield "x + rng.normal(0, sigma, n)", best(lambda: x + rng.normal(0.0, sigma, n), n, 50), False, "unsafe"


def opendp_rows(n, sigma):
    """OpenDP's make_gaussian on vectors of floats, on our grid and on its own, and on one float."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    x = [0.0] * n
    for name, k in (("our grid", -24), ("its default grid", None)):
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n)
        measure = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=sigma, k=k)
        taken = best(lambda measure=measure: measure(x), n, 3)
        yield f"opendp {dp.__version__} vector, {name}", taken, False, ""
    single = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=sigma)
    yield "opendp one float, its default grid", best(lambda: [single(0.0) for _ in range(300)], 300, 3), True, ""


def diffprivlib_rows(_, sigma):
    """diffprivlib's Gaussian on one float: it takes no vectors."""
    from diffprivlib.mechanisms import GaussianAnalytic

    mechanism = GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)
    yield (
        "diffprivlib one float",
        best(lambda: [mechanism.randomise(0.0) for _ in range(2000)], 2000, 3),
        True,
        "unsafe",
    )


def main():
    """Each peer that imports."""
    n, sigma = int(sys.argv[1]), float(sys.argv[2])
    rows = []
    for name, peer in (("numpy", numpy_rows), ("opendp", opendp_rows), ("diffprivlib", diffprivlib_rows)):
        try:
            rows += [{"name": a, "seconds": b, "scalar": c, "note": d} for a, b, c, d in peer(n, sigma)]
        except Exception as error:
            rows.append({"name": name, "seconds": None, "scalar": False, "note": f"does not run here: {error}"})
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
