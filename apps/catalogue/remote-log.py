"""Append blocks to a file, with an fsync after each or without, and tell another machine of each."""

import os
import socket
import sys

BLOCKS = 4
BLOCK_BYTES = 4096
REMOTE = ("192.0.2.1", 7000)

fsync, way = sys.argv[1:]
remote = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
file = os.open("blocks", os.O_WRONLY | os.O_APPEND)
for number in range(1, BLOCKS + 1):
    os.write(file, b"%d" % number * BLOCK_BYTES)
    if fsync == "yes":
        os.fsync(file)
    if way == "udp":
        remote.sendto(f"block {number}".encode(), REMOTE)
    else:
        print(f"block {number}", flush=True)
os.close(file)
