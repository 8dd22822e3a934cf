"""Bytes a row and scan time of a stored history, beside the same rows in other encodings.

    pip install pyarrow datafusion
    python benches/peers/encodings.py STORE/samples --days 7 --runs 7

Writes the newest days of the table once more for every encoding, sorted as they are, in row groups
as long; asks each for the sum of every measurement, with the same reader, in turn, and takes the
median. The sums must agree. `loadline` is the files as they stand. `fastest` is what has no scan
faster than itself; the aim is at most 13.0 bytes a row at no more than 1.3 times its scan time.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq

MEASURED = (pa.types.is_floating, pa.types.is_integer)


def variants(schema):
    """Name and options of what the rows are written as."""
    wide = [f.name for f in schema if pa.types.is_floating(f.type) or pa.types.is_int64(f.type)]
    split = {"use_dictionary": False, "column_encoding": dict.fromkeys(wide, "BYTE_STREAM_SPLIT")}
    plain = {"use_dictionary": False}
    for codec in ("none", "lz4", "snappy", "zstd"):
        yield f"dictionary {codec}", {"compression": codec}
        yield f"plain {codec}", {"compression": codec, **plain}
    yield "byte places zstd", {"compression": "zstd", **split}


def question(context, schema):
    measured = [f.name for f in schema if any(is_kind(f.type) for is_kind in MEASURED)]
    sums = ", ".join(f"sum({name}), count({name})" for name in measured)
    return f"SELECT count(*), min(sampled_at), max(sampled_at), {sums} FROM {context}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    files = sorted(asked.table.glob("date=*/*.parquet"))[-asked.days :]
    schema = pq.read_schema(files[0])
    with tempfile.TemporaryDirectory() as scratch:
        places = {"loadline": pathlib.Path(scratch) / "loadline"}
        for name, options in variants(schema):
            places[name] = pathlib.Path(scratch) / name.replace(" ", "-")
            places[name].mkdir()
            for number, file in enumerate(files):
                rows = pq.ParquetFile(file).read()
                pq.write_table(
                    rows, places[name] / f"{number}.parquet", row_group_size=1 << 20, **options
                )
        places["loadline"].mkdir()
        for number, file in enumerate(files):
            (places["loadline"] / f"{number}.parquet").symlink_to(file.resolve())
        context = datafusion.SessionContext(
            datafusion.SessionConfig({"datafusion.execution.target_partitions": str(asked.threads)})
        )
        asked_of = {}
        for number, (name, place) in enumerate(places.items()):
            context.register_parquet(f"t{number}", str(place))
            asked_of[name] = question(f"t{number}", schema)
        times, told = {name: [] for name in places}, {}
        for run in range(asked.runs + 1):
            for name, sql in asked_of.items():
                start = time.perf_counter()
                answer = context.sql(sql).collect()[0].to_pydict()
                taken = time.perf_counter() - start
                told[name] = [values[0] for values in answer.values()]
                if run:
                    times[name].append(taken)
        rows = told["loadline"][0]
        for name, answer in told.items():
            for ours, theirs in zip(told["loadline"], answer):
                near = isinstance(ours, float) and abs(ours - theirs) <= 1e-9 * abs(ours)
                assert ours == theirs or near, (name, ours, theirs)
        fastest = min(statistics.median(taken) for taken in times.values())
        print(f"{rows} rows of {len(files)} days, {asked.threads} threads, {asked.runs} runs")
        print(f"{'encoding':20} {'bytes/row':>9} {'scan ms':>8} {'to the fastest':>14}")
        for name, place in places.items():
            size = sum(file.stat().st_size for file in place.iterdir()) / rows
            median = statistics.median(times[name])
            print(f"{name:20} {size:9.2f} {median * 1e3:8.0f} {median / fastest:14.2f}")


if __name__ == "__main__":
    main()
