"""Append blocks to a file, with an fsync after each or without, and say that each is there."""

import os
import sys

BLOCKS = 4
BLOCK_BYTES = 4096

file = os.open("blocks", os.O_WRONLY | os.O_APPEND)
for number in range(1, BLOCKS + 1):
    os.write(file, b"%d" % number * BLOCK_BYTES)
    if sys.argv[1] == "yes":
        os.fsync(file)
    print(f"block {number}", flush=True)
os.close(file)
