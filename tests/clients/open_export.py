"""Opens an export by local days with pyarrow, DuckDB and Polars and shows that they agree.

    python tests/clients/open_export.py FOLDER ZONE DAY

FOLDER holds part-0.parquet with a column `period_started_at`, whose first value is the start of DAY in
ZONE, and by-day/ with folders `period_started_at=DAY`. Exits 1 where a reader sees something else.
"""

import datetime
import pathlib
import sys
import zoneinfo

import duckdb
import polars
import pyarrow.parquet


def main(folder, zone, day):
    folder = pathlib.Path(folder)
    file = str(folder / "part-0.parquet")
    date = datetime.date.fromisoformat(day)
    start = datetime.datetime.combine(date, datetime.time(), zoneinfo.ZoneInfo(zone))

    column = pyarrow.parquet.read_table(file).column("period_started_at")
    expect("pyarrow zone", column.type.tz, zone)
    expect("pyarrow", min(column.to_pylist()), start)

    column = polars.read_parquet(file)["period_started_at"]
    expect("polars zone", column.dtype.time_zone, zone)
    expect("polars", column.min(), start)

    days = str(folder / "by-day" / "*" / "*.parquet")
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        # As text, since a timestamp with zone needs another package in Python.
        told = connection.execute(
            "SELECT epoch_ms(min(period_started_at)), typeof(min(period_started_at)) "
            "FROM read_parquet(?)", [file]).fetchone()
        expect("duckdb", told, (round(start.timestamp() * 1000), "TIMESTAMP WITH TIME ZONE"))
        told = connection.execute(
            "SELECT min(period_started_at), typeof(min(period_started_at)) "
            "FROM read_parquet(?, hive_partitioning = true)", [days]).fetchone()
        expect("duckdb by day", told, (date, "DATE"))

    told = polars.read_parquet(days, hive_partitioning=True, try_parse_hive_dates=True)
    expect("polars by day", told["period_started_at"].min(), date)
    print(f"{zone}: {start.isoformat()}")


def expect(what, seen, expected):
    if seen != expected:
        sys.exit(f"{what}: {seen!r} instead of {expected!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
