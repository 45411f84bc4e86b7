"""OpenDP's Polars path on one Parquet file: all 1- to 3-way tables of four columns, each row a unit. Prints JSON.

rho = psi^2/2 is shared evenly by the tables, which is what its context does; rho-zCDP promises less than psi-GDP. Its
AIM fits a model to tables that it chooses; here it is given the same tables, where it runs.
"""

import json
import resource
import sys
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations, product
from time import process_time
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")

TABLES = [table for order in (1, 2, 3) for table in combinations("abcd", order)]


def keys(table: tuple[str, ...], sizes: dict[str, int]) -> pl.LazyFrame:
    """All cells of a table."""
    cells = list(product(*(range(sizes[c]) for c in table)))
    return pl.LazyFrame(
        {c: [cell[i] for cell in cells] for i, c in enumerate(table)}, schema=dict.fromkeys(table, pl.Int32)
    )


def separate(path: str, sizes: dict[str, int]) -> dict[str, Any]:
    """Each table by itself, for an equal share of rho."""
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=0.5),
        split_evenly_over=len(TABLES),
        margins=[dp.polars.Margin(by=list(table), max_length=10**7) for table in TABLES],
    )
    found = {}
    for table in TABLES:
        query = context.query().group_by(*table).agg(dp.len().alias("n")).with_keys(keys(table, sizes))
        found[table] = query.release().collect()
    return found


def aim(path: str, sizes: dict[str, int]) -> dict[str, Any]:
    """A model fitted by AIM, asked for the same tables."""
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=0.5),
        split_evenly_over=1,
    )
    names = {c: list(range(n)) for c, n in sizes.items()}
    model = context.query().contingency_table(keys=names, algorithm=dp.mbi.AIM()).release()
    found = {}
    for table in TABLES:
        cells = np.asarray(model.project(table)).reshape(
            [-1] if len(table) == 1 else [len(names[c]) + 1 for c in table]
        )
        shape = [len(names[c]) + 1 for c in table]
        inner = cells.reshape(shape)[tuple(slice(0, n - 1) for n in shape)]
        flat = list(product(*(range(sizes[c]) for c in table)))
        found[table] = pl.DataFrame(
            {c: [cell[i] for cell in flat] for i, c in enumerate(table)} | {"n": inner.reshape(-1)}
        )
    return found


def judged(ask: Callable[[str, dict[str, int]], dict[str, Any]], path: str, sizes: dict[str, int]) -> dict[str, Any]:
    """Error by order, CPU seconds and memory; or why it did not run."""
    began = process_time()
    try:
        found = ask(path, sizes)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
    seconds, squares = process_time() - began, {1: [], 2: [], 3: []}
    rows = pl.read_parquet(path)
    for table, released in found.items():
        truth = rows.group_by(*table).agg(pl.len().alias("t")).with_columns(pl.col(c).cast(pl.Int32) for c in table)
        plain = released.with_columns(pl.col(c).cast(pl.Int32) for c in table)
        both = plain.join(truth, on=list(table), how="left").with_columns(pl.col("t").fill_null(0))
        squares[len(table)].append(((both["n"].cast(pl.Float64) - both["t"]) ** 2).to_numpy())
    rmse = {str(order): float(np.sqrt(np.mean(np.concatenate(parts)))) for order, parts in squares.items()}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"rmse": rmse, "seconds": seconds, "memory": memory}


def main(path: str, sizes: str) -> None:
    """Both ways, one after the other."""
    given = dict(zip("abcd", map(int, sizes.split(",")), strict=True))
    found = {ask.__name__: judged(ask, path, given) for ask in (separate, aim)}
    print(json.dumps(found | {"version": version("opendp")}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
