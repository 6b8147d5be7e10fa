"""The box's side of the measurement of output delays: writes to a file and says the time, again and again.

All processes of a machine have one monotonic clock, in a box as well.
"""

import os
import sys
import time

_PAUSE_S = 0.02


def main(outputs: int) -> None:
    """Write and say."""
    with open("file", "ab", buffering=0) as file:
        for _ in range(outputs):
            file.write(bytes(4096))
            os.write(1, f"said {time.monotonic_ns()}\n".encode())
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main(int(sys.argv[1]))
