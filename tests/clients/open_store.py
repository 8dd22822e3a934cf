"""Opens a store with deltalake, DuckDB and Polars and shows that they agree.

    python tests/clients/open_store.py FOLDER

Needs: pip install deltalake duckdb polars pyarrow. Exits 1 where a reader sees something else.
DuckDB reads the files that the log names, so that no extension has to be fetched.
"""

import pathlib
import sys

import duckdb
import polars
from deltalake import DeltaTable

TIMES = {
    "samples": "sampled_at",
    "node_samples": "sampled_at",
    "gpu_counts": "counted_at",
    "jobs": "submitted_at",
    "allocations": "started_at",
    "gpus": "last_seen_at",
    "nodes": "last_seen_at",
}
SUMS = {"samples": "period_s", "node_samples": "period_s", "gpu_counts": "gpus_held",
        "jobs": "gpus_requested", "allocations": "gpu_share_ratio"}


def instant(value):
    """Milliseconds since 1970, or None."""
    return None if value is None else round(value.timestamp() * 1000)


def by_deltalake(table, time, number):
    frame = polars.from_arrow(table.to_pyarrow_table())
    return figures(frame.select(shown(time, number)).row(0))


def by_polars(folder, time, number):
    return figures(polars.scan_delta(str(folder)).select(shown(time, number)).collect().row(0))


def by_duckdb(table, folder, time, number):
    paths = [str(folder / path) for path in sorted(add["path"] for add in adds(table))]
    total = f"coalesce(sum({number}), 0)" if number else "0"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # epoch_ms, since a timestamp with zone needs another package in Python.
        count, first, last, total = connection.execute(
            f"SELECT count(*), epoch_ms(min({time})), epoch_ms(max({time})), {total} "
            "FROM read_parquet(?, union_by_name = true)", [paths]).fetchone()
    return count, first, last, round(float(total), 3)


def shown(time, number):
    total = polars.col(number).sum() if number else polars.lit(0.0)
    return [polars.len(), polars.col(time).min().alias("first"),
            polars.col(time).max().alias("last"), total.alias("total")]


def figures(row):
    count, first, last, total = row
    return count, instant(first), instant(last), round(float(total or 0), 3)


def adds(table):
    return polars.DataFrame(table.get_add_actions(flatten=True)).to_dicts()


def main(store):
    checked = 0
    for name, time in TIMES.items():
        folder = pathlib.Path(store).resolve() / name
        if not (folder / "_delta_log").is_dir():
            continue
        table = DeltaTable(str(folder))
        number = SUMS.get(name)
        seen = {
            "deltalake": by_deltalake(table, time, number),
            "polars": by_polars(folder, time, number),
            "duckdb": by_duckdb(table, folder, time, number),
        }
        told = sum(add["num_records"] for add in adds(table))
        if len(set(seen.values())) != 1 or told != seen["duckdb"][0]:
            sys.exit(f"{name}: readers differ: {seen}; the log tells {told} rows")
        print(f"{name}: version {table.version()}, rows, first, last, total {seen['duckdb']}")
        checked += 1
    if checked == 0:
        sys.exit(f"no table in {store}")


if __name__ == "__main__":
    main(sys.argv[1])
