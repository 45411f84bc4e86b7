"""The paper's numerical experiment: three roads from psi to epsilon at delta = 1e-5, beside the published numbers."""

import csv
from collections.abc import Iterable
from importlib.resources import files
from typing import IO

import numpy as np
from numpy.typing import NDArray

from psidp.maths.profile_inverse import epsilon_from_psi
from psidp.maths.renyi import alpha_optimal, epsilon_from_rdp, rho_from_psi

__all__ = ["COLUMNS", "FIGURES", "experiment", "write_csv"]

DELTA = 1e-5
LARGEST_ALPHA = 64.0
FIGURES = {6: 1.9, 7: 6.0}
"""The order behind each figure; Figure 6 is titled alpha = 2, but its data are those of 1.9."""
ROADS = ("privacy_profile", "improved_rdp", "standard_rdp")
COLUMNS = ("psi", *ROADS, "alpha_improved", "improved_rdp_optimal", "alpha_standard", "standard_rdp_optimal")
Columns = dict[str, NDArray[np.float64]]


def experiment(figure: int) -> Columns:
    """All columns of the experiment at one figure's order, those of the paper as published_*, and the largest gap.

    The optimal orders are sought in (1, 64], as the paper does.
    """
    if figure not in FIGURES:
        raise ValueError(f"figure must be 6 or 7, got figure={figure}.")
    alpha, published = FIGURES[figure], _published(figure)
    psi = published["psi"]
    table: Columns = {"psi": psi, "privacy_profile": np.asarray(epsilon_from_psi(psi, DELTA))}
    for conversion in ("improved", "standard"):
        best = np.minimum(alpha_optimal(psi, DELTA, conversion), LARGEST_ALPHA)
        table[f"{conversion}_rdp"] = epsilon_from_rdp(rho_from_psi(psi, alpha), alpha, DELTA, conversion)
        table[f"alpha_{conversion}"] = best
        table[f"{conversion}_rdp_optimal"] = epsilon_from_rdp(rho_from_psi(psi, best), best, DELTA, conversion)
    table |= {f"published_{road}": published[road] for road in ROADS}
    return table


def largest_gap(table: Columns) -> float:
    """Largest relative difference between our numbers and the published ones."""
    return max(float(np.max(np.abs(table[road] / table[f"published_{road}"] - 1.0))) for road in ROADS)


def write_csv(table: Columns, file: IO[str]) -> None:
    """The columns as CSV, with every digit."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table)
    rows: Iterable[tuple[float, ...]] = zip(*(column.tolist() for column in table.values()), strict=True)
    writer.writerows(rows)


def _published(figure: int) -> Columns:
    """The published columns."""
    text = files("psidp.present").joinpath("golden", f"figure_{figure}.csv").read_text()
    table = np.genfromtxt(text.splitlines(), delimiter=",", names=True)
    return {name: np.asarray(table[name]) for name in ("psi", *ROADS)}
