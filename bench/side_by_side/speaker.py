"""The box's side of the measurement of output delays: writes to a file and says the time, again and again.

All processes of a machine have one monotonic clock, in a box as well.
"""

import os
import sys
import time

_PAUSE_S = 0.02


def main(outputs: int, is_durable: bool) -> None:
    """Write and say, after an fsync if it is to be durable."""
    with open("file", "ab", buffering=0) as file:
        for _ in range(outputs):
            file.write(bytes(4096))
            said = time.monotonic_ns()
            if is_durable:
                os.fsync(file.fileno())
            os.write(1, f"said {said}\n".encode())
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main(int(sys.argv[1]), "fsync" in sys.argv[2:])
