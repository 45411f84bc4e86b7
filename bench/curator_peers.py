"""OpenDP's Polars path on one Parquet file: private sum and count by group, eight groups a unit. Prints JSON."""

import json
import sys
from importlib.metadata import version
from time import perf_counter, process_time

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def main(path: str) -> None:
    """The query that the curator's benchmark asks, as OpenDP states it."""
    start, began = perf_counter(), process_time()
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("u")),
        privacy_loss=dp.loss_of(rho=0.5),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=[], max_length=10**9), dp.polars.Margin(by=["g"], max_length=10**6)],
    )
    keys = pl.LazyFrame({"g": list(range(1000))}, schema={"g": pl.Int32})
    query = (
        context.query()
        .truncate_per_group(1, by=["g"])
        .truncate_num_groups(8, by=["g"], keep="first")
        .group_by("g")
        .agg(dp.len(), pl.col("v").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 100.0)))
        .with_keys(keys)
    )
    answer = query.release().collect()
    wall, seconds = perf_counter() - start, process_time() - began
    print(json.dumps({"seconds": seconds, "wall": wall, "groups": answer.height, "version": version("opendp")}))


if __name__ == "__main__":
    main(sys.argv[1])
