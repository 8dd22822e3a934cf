"""Collects from simulated GPUs for long, while collectors are killed and the disk fills up.

    cargo build --release && cargo test --workspace --no-run
    sudo python3 tests/soak.py --loadline target/release/loadline \
        --driver target/debug/examples/libnvml_stand_in.so --minutes 30

The store is on a small tmpfs of its own (which needs root). Two collectors write to it and a
compaction runs every two minutes. Three times the first collector is killed and begun again; once
the disk is filled for half a minute. Every few seconds the rows are asked: what was seen once must
be there ever after, once. At the end no second may be missing but those around a kill.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "benches"))
from collector import gpu, status  # noqa: E402

# Seconds without a reading that a kill may cost: what was not yet synced, and the new start.
KILL_COSTS_S = 5.0


class Soak:
    def __init__(self, asked, folder):
        self.program = str(pathlib.Path(asked.loadline).resolve())
        self.folder, self.store = folder, folder / "disk" / "store"
        self.gpus = asked.gpus
        self.collectors, self.most_mb, self.looks, self.seen = {}, {}, 0, (0, 0)

    def start(self, name, *args):
        log = open(self.folder / f"{name}.log", "a")
        command = [self.program, "--store", str(self.store), "collect", "--name", name, *args]
        self.collectors[name] = subprocess.Popen(command, cwd=self.folder, stderr=log)

    def run(self, *args, fine=(0,)):
        command = [self.program, "--store", str(self.store), *args]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode in fine, (args, done.stdout, done.stderr)
        return done

    def ask(self, question):
        return self.run("sql", "-f", "csv", question).stdout.splitlines()[1:]

    def look(self):
        """Rows of the GPUs and of the node, each of which must be there once, and never go."""
        now = []
        for table, key in (("samples", "gpu_uuid || '/'"), ("node_samples", "'n'")):
            question = f"SELECT count(*), count(DISTINCT {key} || sampled_at) FROM {table}"
            rows, apart = map(int, self.ask(question)[0].split(","))
            assert rows == apart, f"{table}: {rows} rows, {apart} of them apart"
            now.append(rows)
        assert all(a >= b for a, b in zip(now, self.seen)), f"{self.seen} were seen, {now} are there"
        self.seen, self.looks = tuple(now), self.looks + 1
        for name, process in self.collectors.items():
            if process.poll() is None:
                most = status(process.pid)[1]["VmHWM"]
                self.most_mb[name] = max(most, self.most_mb.get(name, 0))

    def fill(self, seconds):
        filler = self.folder / "disk" / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        time.sleep(seconds)
        full = shutil.disk_usage(filler.parent).free
        filler.unlink()
        return full

    def gaps(self):
        """Silences of the GPUs longer than two seconds: when, and how long."""
        question = """SELECT at, next_s FROM (SELECT sampled_at AS at, (CAST(lead(sampled_at) OVER (
            ORDER BY sampled_at) AS BIGINT) - CAST(sampled_at AS BIGINT)) / 1000.0 AS next_s FROM
            (SELECT DISTINCT sampled_at FROM samples)) WHERE next_s > 2 ORDER BY at"""
        return [(at, float(next_s)) for at, next_s in (row.split(",") for row in self.ask(question))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loadline", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--disk-mb", type=int, default=256)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(asked, pathlib.Path(folder))
        disk = soak.folder / "disk"
        disk.mkdir()
        size = f"size={asked.disk_mb}m"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "soak", disk], check=True)
        try:
            verdict(soak, asked)
        except BaseException:
            for log in soak.folder.glob("*.log"):
                print(f"{log.name}: {log.read_text()[-2000:]}", file=sys.stderr)
            raise
        finally:
            for process in soak.collectors.values():
                process.kill()
                process.wait()
            subprocess.run(["umount", disk], check=True)


def verdict(soak, asked):
    driver = soak.folder / "libnvidia-ml.so.1"
    shutil.copy(asked.driver, driver)
    gpus = [gpu(index) for index in range(asked.gpus)]
    script = {"fixed": True, "driver": "580.95.05", "cuda": 13000, "gpus": gpus}
    pathlib.Path(f"{driver}.json").write_text(json.dumps(script))
    (soak.folder / "loadline.toml").write_text(
        f'[collect]\nnvml_library = "{driver}"\nflush_s = 15\n')
    soak.start("gpus", "--nvml", "--interval", "1s")
    soak.start("node", "--node-samples", "--interval", "1s")
    began, lasting = time.time(), asked.minutes * 60
    kills, filled, compacted = [], None, 0
    time.sleep(6)
    while (gone := time.time() - began) < lasting:
        soak.look()
        if len(kills) < 3 and gone > lasting * (len(kills) + 1) / 5:
            process = soak.collectors["gpus"]
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills.append(time.time())
            soak.start("gpus", "--nvml", "--interval", "1s")
        elif filled is None and gone > lasting * 0.7:
            filled = (time.time(), soak.fill(30))
        elif gone > (compacted + 1) * 120:
            soak.run("compact", "--files-max", "2", "--grace", "1s")
            compacted += 1
        time.sleep(3)
    for process in soak.collectors.values():
        process.send_signal(signal.SIGTERM)
    codes = [process.wait() for process in soak.collectors.values()]
    soak.look()
    whole = soak.ask(
        "SELECT count(*), min(n), max(n) FROM (SELECT count(*) AS n FROM samples GROUP BY sampled_at)")
    gaps = soak.gaps()
    doctor = soak.run("doctor", fine=(0, 1))
    print(f"{asked.gpus} GPUs every second for {asked.minutes:g} min, {len(kills)} kills, disk full "
          f"(free bytes then: {filled and filled[1]}), {compacted} compactions, {soak.looks} looks")
    print(f"readings of GPUs and of the node: {soak.seen}; instants, GPUs at each: {whole[0]}")
    print("silences of more than 2 s:", gaps, "kills:",
          [time.strftime("%H:%M:%S", time.gmtime(at)) for at in kills])
    print("most memory in MB:", {name: round(most, 1) for name, most in soak.most_mb.items()})
    print("doctor:", doctor.stdout.strip())
    for name in soak.collectors:
        print(f"{name}:", re.sub(r"\s*\n\s*", " | ", (soak.folder / f"{name}.log").read_text()))
    assert codes == [0, 0], codes
    assert doctor.returncode == 0
    assert whole[0].split(",")[1:] == [str(asked.gpus)] * 2
    assert len(gaps) <= len(kills) and all(gap < KILL_COSTS_S for _, gap in gaps), gaps
    print("nothing was lost")


if __name__ == "__main__":
    main()
