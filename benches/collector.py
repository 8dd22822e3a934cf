"""What `loadline collect` costs a node: share of one core, resident memory, bytes written.

    cargo build --release && cargo test --workspace --no-run
    python benches/collector.py --loadline target/release/loadline \
        --driver target/debug/examples/libnvml_stand_in.so --gpus 8 --interval 1 --seconds 120

The driver is the stand-in of the tests, with every field that the tables hold; what it takes is
part of the figure. With --ship the rows go to a `loadline serve` on the loopback, as from a node of
a fleet; without, into tables here. Rows asked afterwards must be as many as rounds times GPUs.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

GIB = 1 << 30


def gpu(index):
    return {
        "uuid": f"GPU-{index:08x}-0000-4c1e-9f3a-000000000000",
        "name": "NVIDIA H100 80GB HBM3",
        "vbios": "96.00.A5",
        "util": [90 + index % 8, 61],
        "memory": [(40 + index % 8) * GIB, 80 * GIB],
        "power_mw": 650_500 + index,
        "energy_mj": 7_200_000_500,
        "alive": True,
        "temp": 60 + index % 8,
        "fans": [30, 45],
        "clocks": [1980, 1981, 2619],
        "throttle": 4,
        "ecc": [3, 1],
        "xids": [],
        "fields": {"82/0": 71, "198/0": 1000, "197/0": 2000,
                   "139/4294967295": 100, "138/4294967295": 200},
        "gpm": {"2": 88.0, "3": 41.5, "5": 62.0, "10": 55.0, "11": 1.0, "12": 12.5, "13": 7.0,
                "20": 999.0, "21": 999.0, "60": 999.0, "61": 999.0},
        "processes": [[os.getpid(), 60 * GIB]],
        "graphics": [],
    }


def status(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(text[11]) + int(text[12])
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {k: int(v.split()[0]) / 1024 for k, v in
             (line.split(":", 1) for line in lines) if k in ("VmRSS", "VmHWM")}
    return ticks / os.sysconf("SC_CLK_TCK"), sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loadline", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--interval", type=float, default=1)
    parser.add_argument("--flush", type=float, default=300)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--ship", action="store_true")
    asked = parser.parse_args()
    program = str(pathlib.Path(asked.loadline).resolve())
    with tempfile.TemporaryDirectory() as folder:
        driver = pathlib.Path(folder) / "libnvidia-ml.so.1"
        shutil.copy(asked.driver, driver)
        script = {"fixed": True, "driver": "580.95.05", "cuda": 13000,
                  "gpus": [gpu(index) for index in range(asked.gpus)]}
        pathlib.Path(f"{driver}.json").write_text(json.dumps(script))
        pathlib.Path(folder, "loadline.toml").write_text(
            f'[collect]\nname = "n1"\nnvml = true\nnvml_library = "{driver}"\n'
            f"interval_s = {asked.interval}\nflush_s = {asked.flush}\n")
        server, where = None, []
        if asked.ship:
            server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0"], cwd=folder,
                                      stderr=subprocess.PIPE, text=True)
            where = ["--to", server.stderr.readline().split()[-1]]
        collect = subprocess.Popen([program, "collect", *where], cwd=folder, stderr=subprocess.PIPE)
        time.sleep(5)
        began, (before, _) = time.time(), status(collect.pid)
        time.sleep(asked.seconds)
        lasted, (after, sizes) = time.time() - began, status(collect.pid)
        collect.send_signal(signal.SIGTERM)
        told = collect.communicate()[1].decode().strip().splitlines()[-1]
        if server:
            server.send_signal(signal.SIGTERM)
            server.communicate()
        count = subprocess.run(
            [program, "sql", "-f", "csv", "SELECT count(*), count(DISTINCT sampled_at) FROM samples"],
            cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()[1]
        rows, instants = map(int, count.split(","))
        assert rows == instants * asked.gpus and instants >= lasted / asked.interval, (rows, instants)
        print(f"{asked.gpus} GPUs every {asked.interval} s for {lasted:.0f} s, "
              f"{'sent to a server' if server else f'moved every {asked.flush} s'}: {(after - before) / lasted:.3%} of one core, "
              f"{sizes['VmRSS']:.1f} MB resident, {sizes['VmHWM']:.1f} MB at most; {told}")


if __name__ == "__main__":
    main()
