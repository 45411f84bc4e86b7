"""Makes strategies.json: squared sensitivities by jax-privacy 2.0.0. Run with an interpreter that has it."""

import json
from pathlib import Path

CASES = [(10, 1, 1), (52, 4, 1), (52, 4, 13), (365, 12, 30), (365, 13, 1)]


def coefficients(periods: int) -> list[int]:
    """The square root of the matrix of totals, cut to whole numbers."""
    exact, found = 1 << 80, []
    for j in range(periods):
        exact = exact * (2 * j - 1) // (2 * j) if j else exact
        found.append(exact >> 64)
    return found


def squared(periods: int, at_most: int, apart: int) -> float:
    """|C v|^2 of the worst unit."""
    import jax
    import jax.numpy as jnp
    from jax_privacy.matrix_factorization import toeplitz

    jax.config.update("jax_enable_x64", True)
    c = jnp.array(coefficients(periods), dtype=jnp.float64)
    return float(toeplitz.minsep_sensitivity_squared(c, min_sep=apart, max_participations=at_most, n=periods))


if __name__ == "__main__":
    found = [
        {"periods": n, "at_most": k, "apart": b, "coefficients": coefficients(n), "squared": squared(n, k, b)}
        for n, k, b in CASES
    ]
    target = Path(__file__).parent / "strategies.json"
    target.write_text(json.dumps({"jax-privacy": "2.0.0", "sensitivity": found}) + "\n")
