"""Kills a collector under load again and again: what it has acknowledged must be there, once.

    cargo build --release
    python3 tests/kills.py --loadline target/release/loadline --kills 300

Senders post readings to the remote-write door, each reading with a time of its own, and note which
requests were answered with success. The collector moves rows into the tables every second, and is
killed after a random time from its start, 50 to 900 ms, so that kills fall into appends, moves and
compactions. At the end every acknowledged reading must be in the store once, and none that was not
sent.
"""

import argparse
import http.client
import pathlib
import random
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

START_MS = 1_772_442_000_000
PER_REQUEST = 20


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def part(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def request(sender, first):
    """A request of one series, in Snappy's block format with nothing but literals."""
    labels = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "UUID": f"GPU-{sender}",
              "Hostname": f"n{sender}"}
    series = b"".join(part(1, part(1, k.encode()) + part(2, v.encode())) for k, v in labels.items())
    for number in range(first, first + PER_REQUEST):
        at_ms = START_MS + number * 100
        series += part(2, b"\x09" + struct.pack("<d", number % 101) + b"\x10" + varint(at_ms))
    plain = part(1, series)
    packed = varint(len(plain))
    for start in range(0, len(plain), 60):
        piece = plain[start : start + 60]
        packed += bytes([(len(piece) - 1) << 2]) + piece
    return packed


class Sender(threading.Thread):
    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.port, self.number, self.next = port, number, 0
        self.kept, self.over = [], False

    def run(self):
        while not self.over:
            first, self.next = self.next, self.next + PER_REQUEST
            try:
                door = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                door.request("POST", "/api/v1/write", request(self.number, first),
                             {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"})
                if door.getresponse().status // 100 == 2:
                    self.kept.append(first)
                door.close()
            except OSError:
                time.sleep(0.01)
            except http.client.HTTPException:
                pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loadline", required=True)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    program, dice = str(pathlib.Path(asked.loadline).resolve()), random.Random(asked.seed)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "loadline.toml").write_text("[collect]\nflush_s = 1\n")
        command = [program, "collect", "--listen", f"127.0.0.1:{port}", "--name", "door"]
        senders = [Sender(port, number) for number in range(asked.senders)]
        for sender in senders:
            sender.start()
        for kill in range(asked.kills + 1):
            collector = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE)
            told = collector.stderr.readline()
            assert b"listening" in told, told
            if kill < asked.kills:
                time.sleep(dice.uniform(0.05, 0.9))
                collector.send_signal(signal.SIGKILL)
                collector.communicate()
        time.sleep(2)
        for sender in senders:
            sender.over = True
        for sender in senders:
            sender.join()
        collector.send_signal(signal.SIGTERM)
        last = collector.communicate()[1].decode()
        assert collector.returncode == 0, last
        rows = subprocess.run(
            [program, "sql", "-f", "csv",
             "SELECT gpu_uuid, CAST(sampled_at AS BIGINT), gpu_util_ratio FROM samples"],
            cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
        doctor = subprocess.run([program, "doctor"], cwd=folder, capture_output=True, text=True)
    found = {}
    for row in rows:
        uuid, at_ms, ratio = row.split(",")
        key = (int(uuid.removeprefix("GPU-")), (int(at_ms) - START_MS) // 100)
        assert key not in found, f"{key} is there twice"
        found[key] = float(ratio)
    kept = 0
    for sender in senders:
        for first in sender.kept:
            for number in range(first, first + PER_REQUEST):
                assert abs(found[sender.number, number] - number % 101 / 100) < 1e-9
                kept += 1
    assert all(number < senders[sender].next for sender, number in found)
    assert kept > asked.kills, "too few readings were kept for a verdict"
    assert doctor.returncode == 0, doctor.stdout
    print(f"{asked.kills} kills: {kept} readings acknowledged, each there once; "
          f"{len(found) - kept} more were sent and kept, but the answer was cut off")


if __name__ == "__main__":
    main()
