"""An S3 of one bucket in memory, on loopback: prints its port, and ends with its standard input."""

import sys
import urllib.request

from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()
bucket = urllib.request.Request(f"http://127.0.0.1:{port}/{sys.argv[1]}", method="PUT")
urllib.request.urlopen(bucket).read()
print(port, flush=True)
sys.stdin.read()
server.stop()
