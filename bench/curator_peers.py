"""OpenDP's Polars path on one Parquet file: private sum and count by group, eight groups a unit. Prints JSON.

It has no L2 bound over groups, so the nearest questions are two: add up each unit's rows in each group and clip those
sums to three rows' worth, as the curator does; or keep one row of each unit in each group, by default a random one.
"""

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter, process_time

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")

KEYS = pl.LazyFrame({"g": list(range(1000))}, schema={"g": pl.Int32})


def query(path: str) -> dp.polars.LazyFrameQuery:
    """A query on the file's rows, whose unit is u."""
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("u")),
        privacy_loss=dp.loss_of(rho=0.5),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=[], max_length=10**9), dp.polars.Margin(by=["g"], max_length=10**6)],
    )
    return context.query()


def summed(path: str) -> pl.DataFrame:
    """All of a unit's rows in a group count, up to three rows' worth."""
    value = pl.col("v").fill_null(0.0).fill_nan(0.0).clip(0.0, 100.0)
    cells = (
        query(path)
        .truncate_num_groups(8, by=["g"], keep="first")
        .group_by("u", "g")
        .agg(pl.len().alias("n"), value.sum().alias("s"))
    )
    counts = pl.col("n").cast(pl.Int64).fill_null(0).dp.sum((0, 3))
    sums = pl.col("s").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 300.0))
    return cells.group_by("g").agg(counts, sums).with_keys(KEYS).release().collect()


def truncated(path: str) -> pl.DataFrame:
    """One row of a unit in a group counts, drawn at random."""
    kept = query(path).truncate_per_group(1, by=["g"]).truncate_num_groups(8, by=["g"], keep="first")
    sums = pl.col("v").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 100.0))
    return kept.group_by("g").agg(dp.len(), sums).with_keys(KEYS).release().collect()


def timed(ask: Callable[[str], pl.DataFrame], path: str) -> dict[str, float]:
    """CPU seconds and seconds on the clock, from file to answer."""
    start, began = perf_counter(), process_time()
    groups = ask(path).height
    return {"seconds": process_time() - began, "wall": perf_counter() - start, "groups": groups}


def main(path: str) -> None:
    """Both questions, one after the other."""
    found = {ask.__name__: timed(ask, path) for ask in (summed, truncated)}
    print(json.dumps(found | {"version": version("opendp")}))


if __name__ == "__main__":
    main(sys.argv[1])
