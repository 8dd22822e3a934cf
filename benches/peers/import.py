#!/usr/bin/env python3
"""Times `loadline import samples` against DuckDB on the same Parquet files, side by side.

DuckDB reads all files, sorts by node, gpu and instant, and writes Parquet with ZSTD on all cores,
once by UTC day and once as one file. loadline does what an import does: it also checks every value,
integrates time, finds gaps, and commits a Delta table of sorted days. Each run is a new process
that writes to a new folder. The first of each is not timed: what they wrote must agree before any
time counts.

    pip install duckdb
    python benches/peers/import.py FOLDER --loadline target/release/loadline

FOLDER holds Parquet files, at any depth, whose columns have loadline's names; those that are not
readings (no `sampled_at`) are left out. Wall time and that of all cores are medians, memory is the
largest resident set.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import duckdb

DUCKDB = """
import sys, duckdb
days, partitions, target, spill, *files = sys.argv[1:]
with duckdb.connect() as connection:
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET temp_directory = '{spill}'")
    connection.execute(
        f"COPY (SELECT *{days} FROM read_parquet($files, hive_partitioning = false) "
        f"ORDER BY node, gpu, sampled_at) TO '{target}' "
        f"(FORMAT parquet, COMPRESSION zstd{partitions})", {"files": files})
"""
BY_DAY = [", sampled_at::DATE AS date", ", PARTITION_BY (date)"]
ONE_FILE = ["", ""]


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="folder of the Parquet files to read")
    parser.add_argument("--loadline", default="target/release/loadline", help="the program")
    parser.add_argument("--mapping", help="mapping file, where the columns have other names")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each (default 5)")
    parser.add_argument("--scratch", help="folder for what is written; it is deleted afterwards")
    return parser.parse_args()


def readings(folder):
    """The files in `folder` that hold readings."""
    found = []
    for path in sorted(folder.rglob("*.parquet")):
        columns = duckdb.execute("SELECT name FROM parquet_schema(?)", [str(path)]).fetchall()
        if ("sampled_at",) in columns:
            found.append(str(path))
    return found or sys.exit(f"no Parquet file with `sampled_at` in {folder}")


def run(command, log):
    """Runs a command; returns its seconds, those of all cores, and the most bytes it held."""
    with open(log, "wb") as out:
        begun = time.perf_counter()
        child = os.posix_spawnp(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)])
        _, status, used = os.wait4(child, 0)
        seconds = time.perf_counter() - begun
    if status != 0:
        sys.exit(f"{command[0]} failed:\n{pathlib.Path(log).read_text(errors='replace')}")
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * unit


def written(target):
    """The Parquet files that a run wrote; of a Delta table those that its newest version names."""
    log = target / "samples" / "_delta_log"
    if not log.is_dir():
        return [str(path) for path in target.rglob("*.parquet")] or [str(target)]
    files = set()
    for version in sorted(log.glob("*.json")):
        for line in version.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files.add(str(log.parent / action["add"]["path"]))
            if "remove" in action:
                files.discard(str(log.parent / action["remove"]["path"]))
    return sorted(files)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def figures(files):
    """Rows, two sums, and the first and last instant."""
    return duckdb.execute(
        "SELECT count(*), round(sum(gpu_util_ratio::DOUBLE), 2), "
        "sum(mem_used_bytes::DECIMAL(38, 0))::VARCHAR, "
        "epoch_ms(min(sampled_at)), epoch_ms(max(sampled_at)) "
        "FROM read_parquet(?, union_by_name = true, hive_partitioning = false)",
        [files]).fetchone()


def main():
    given = parse()
    files = readings(given.folder)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="import-bench-", dir=given.scratch))
    target, spill = scratch / "written", scratch / "spill"
    duck = [sys.executable, "-c", DUCKDB]
    mapping = ["--mapping", given.mapping] if given.mapping else []
    sides = {
        "DuckDB, by day": [*duck, *BY_DAY, str(target), str(spill), *files],
        "DuckDB, one file": [*duck, *ONE_FILE, str(target), str(spill), *files],
        "loadline": [given.loadline, "import", "samples", *files, "--store", str(target), *mapping],
    }
    seconds = {side: [] for side in sides}
    cores = {side: [] for side in sides}
    memory = dict.fromkeys(sides, 0)
    size, seen = {}, {}
    try:
        for turn in range(given.runs + 1):
            for side, command in sides.items():
                spent, busy, most = run(command, scratch / "log")
                memory[side] = max(memory[side], most)
                if turn > 0:
                    seconds[side].append(spent)
                    cores[side].append(busy)
                else:
                    files_written = written(target)
                    seen[side] = figures(files_written)
                    size[side] = sum(os.path.getsize(path) for path in files_written)
                remove(target)
                remove(spill)
            if len(set(seen.values())) != 1:
                sys.exit(f"the results differ: {seen}")
    finally:
        shutil.rmtree(scratch)
    show(files, seen["loadline"][0], seconds, cores, memory, size)


def show(files, rows, seconds, cores, memory, size):
    median = {side: statistics.median(times) for side, times in seconds.items()}
    read = sum(os.path.getsize(path) for path in files)
    print(f"{rows:,} rows, {len(files)} files, {read / 1e6:.0f} MB read; {os.cpu_count()} cores; "
          f"DuckDB {duckdb.__version__}; rows, two sums, first and last instant agree")
    print(f"{'':18}{'median s':>10}{'fastest':>10}{'slowest':>10}{'CPU s':>8}{'rows/s':>12}"
          f"{'peak MB':>10}{'MB written':>12}")
    for side, times in seconds.items():
        print(f"{side:18}{median[side]:>10.2f}{min(times):>10.2f}{max(times):>10.2f}"
              f"{statistics.median(cores[side]):>8.2f}{rows / median[side]:>12,.0f}"
              f"{memory[side] / 1e6:>10.0f}{size[side] / 1e6:>12.0f}")
    for side in seconds:
        if side != "loadline":
            print(f"loadline / {side}: {median['loadline'] / median[side]:.2f}")


if __name__ == "__main__":
    main()
