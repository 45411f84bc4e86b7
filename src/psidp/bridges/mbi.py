"""mbi: a cube's noisy residuals as measurements of the library mbi, which fits a model and draws synthetic rows.

Nothing is estimated here, and nothing costs anything: the numbers are released already.
"""

from typing import Any

import numpy as np

from psidp.errors import MissingExtraError
from psidp.tables.cube_answer import Cube

__all__ = ["domain_of", "measurements", "synthetic_rows"]


def domain_of(cube: Cube) -> Any:
    """The cube's columns and how many values each has, as mbi's Domain."""
    return _library().Domain([c.name for c in cube.columns], [c.size for c in cube.columns])


def measurements(cube: Cube) -> list[Any]:
    """One mbi.LinearMeasurement for each residual of the cube's counts.

    mbi takes measurements to have independent noise of one standard deviation each. Residuals do, scaled to it; tables
    of a cube do not, since they share their noise.
    """
    library, marginals = _library(), cube.marginals
    plan, found = cube.counted.plans[0], cube.counted.coefficients[0]
    made = []
    for part in marginals.residuals:
        columns = tuple(cube.columns[i].name for i in part)
        values = (found[part] / marginals.scales(part).value).reshape(-1)
        query = _Residual(tuple(_rows(marginals.bases[i]) for i in part))
        made.append(library.LinearMeasurement(values, columns, plan.sigma(part), query))
    return made


def synthetic_rows(cube: Cube, rows: int | None = None, steps: int = 1000) -> dict[str, list[Any]]:
    """Rows drawn from the model that mbi fits to the cube, by column; as many as the cube counts, unless told.

    For a pandas frame: pandas.DataFrame(synthetic_rows(cube)). Bins come as text such as [0, 15).
    """
    from mbi import estimation  # type: ignore[import-not-found,import-untyped,unused-ignore]

    total = max(1.0, cube.query(measure="count").value)
    model = estimation.MirrorDescent().estimate(domain_of(cube), measurements(cube), known_total=total, iters=steps)
    drawn = model.synthetic_data(round(total) if rows is None else rows).to_dict()
    return {c.name: [c.labels[int(code)] for code in drawn[c.name]] for c in cube.columns}


class _Residual:
    """The residual of a table: each column's basis, its rows of norm one, along its axis."""

    def __init__(self, matrices: tuple[Any, ...]) -> None:
        self.matrices = matrices

    def __call__(self, factor: Any) -> Any:
        import jax.numpy as jnp  # type: ignore[import-not-found,unused-ignore]

        values = factor.datavector(flatten=False)
        for axis, matrix in enumerate(self.matrices):
            values = jnp.moveaxis(jnp.tensordot(jnp.asarray(matrix), values, axes=(1, axis)), 0, axis)
        return values.reshape(-1)


def _rows(basis: Any) -> Any:
    """The basis as a matrix whose rows are divided by their scales."""
    dense = basis.encode(np.eye(basis.size))
    return dense / np.sqrt(np.array(basis.squares, np.float64))[:, None]


def _library() -> Any:
    """The module mbi, or the line that installs it."""
    try:
        import mbi
    except ImportError:
        raise MissingExtraError("mbi", "synth") from None
    return mbi
