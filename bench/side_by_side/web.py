"""Apache with 50 connections: a mix like SPECweb99's for clients that read slowly, and POSTs without a pause.

A POST is written to a log before it is answered. Where the file system is synchronous, so is this write.
"""

import contextlib
import random
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

from side_by_side.disks import run
from side_by_side.site import ADDRESS, Site, WorkloadError
from side_by_side.workload import Figures

CONNECTIONS = 50
CLASSES = ("0-1 KB", "1-10 KB", "10-100 KB", "100-1000 KB")
THROUGHPUT = "web mix, kbit/s a connection"
POSTS = "POSTs only, requests/s"
POSTS_P99 = "POSTs only, p99 ms"
_PORT = 8080
_CLASS_SHARES = (35, 50, 14, 1)
_POST_SHARE = 0.048
_RATE = 50_000
"""Bytes a second that a client of SPECweb99 reads."""
_READ_BYTES = 4096
_START_S = 20
_HERE = Path(__file__).parent


def seconds_of(size: str) -> str:
    """The name of the figure for requests of files of this class."""
    return f"web mix, files of {size}, s"


class Web:
    """Each of the two loads runs for some seconds."""

    name = "web"

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def set_up(self, folder: Path) -> None:
        """Files of nine sizes in each class, as SPECweb99 has them, and what the server needs."""
        (folder / "files").mkdir()
        for number in range(len(CLASSES)):
            for step in range(1, 10):
                (folder / "files" / f"{number}-{step}").write_bytes(b"x" * (step * 100 * 10**number))
        (folder / "run").mkdir()
        for name in ("apache.conf", "post.lua"):
            (folder / name).write_text((_HERE / name).read_text().replace("FOLDER", str(folder)))

    def measure(self, site: Site) -> Figures:
        """Start the server and load it."""
        with site.server("apache2", "-f", site.folder / "apache.conf", "-DFOREGROUND"):
            wait_for_server()
            return paced(self._seconds) | unpaced(self._seconds)


def wait_for_server() -> None:
    """Return when it answers. Raises WorkloadError if it never does."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), contextlib.closing(HTTPConnection(ADDRESS, _PORT, timeout=1)) as connection:
            connection.request("GET", "/files/0-1")
            # Without a route to the server, something else may answer.
            if connection.getresponse().status == 200:
                return
        time.sleep(0.1)
    raise WorkloadError("the web server does not answer")


@dataclass
class Client:
    """One connection of the mix: requests one after the other, until `end`."""

    seed: int
    end: float
    received: int = 0
    spent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def run(self) -> "Client":
        """Request and read. What comes too fast is read at the client's rate."""
        choice = random.Random(self.seed)
        with contextlib.closing(HTTPConnection(ADDRESS, _PORT, timeout=60)) as connection:
            while time.monotonic() < self.end:
                (number,) = choice.choices(range(len(CLASSES)), _CLASS_SHARES)
                started = time.monotonic()
                if choice.random() < _POST_SHARE:
                    connection.request("POST", "/post", b"p" * 200)
                    number = 0
                else:
                    connection.request("GET", f"/files/{number}-{choice.randint(1, 9)}")
                if self._read(connection):
                    self.spent[CLASSES[number]].append(time.monotonic() - started)
        return self

    def _read(self, connection: HTTPConnection) -> bool:
        """Whether the answer was read to its end."""
        response = connection.getresponse()
        if response.status != 200:
            raise WorkloadError(f"the web server answers {response.status}")
        began, count = time.monotonic(), 0
        for piece in iter(lambda: response.read(_READ_BYTES), b""):
            count += len(piece)
            self.received += len(piece)
            time.sleep(max(0, began + count / _RATE - time.monotonic()))
            if time.monotonic() > self.end:
                return False
        return True


def clients(end: float) -> Iterator[Client]:
    """All connections at the same time."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        yield from pool.map(lambda seed: Client(seed, end).run(), range(CONNECTIONS))


def paced(seconds: int) -> Figures:
    """The mix: throughput of a connection, and the mean time of a request for each class of sizes."""
    done = list(clients(time.monotonic() + seconds))
    figures = {THROUGHPUT: sum(client.received for client in done) * 8 / 1000 / seconds / CONNECTIONS}
    for size in CLASSES:
        spent = [time for client in done for time in client.spent[size]]
        if spent:
            figures[seconds_of(size)] = statistics.mean(spent)
    return figures


def unpaced(seconds: int) -> Figures:
    """POSTs only, by wrk."""
    options = ["-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(_HERE / "wrk.lua")]
    return figures_of(run("wrk", *options, f"http://{ADDRESS}:{_PORT}/post"))


def figures_of(output: str) -> Figures:
    """What wrk has measured. Raises WorkloadError if requests failed."""
    if "Non-2xx" in output or "Socket errors" in output:
        raise WorkloadError(output)
    rate, last = re.search(r"Requests/sec: +([\d.]+)", output), re.search(r" 99% +([\d.]+)(us|ms|s)", output)
    if not rate or not last:
        raise WorkloadError(output)
    return {POSTS: float(rate[1]), POSTS_P99: float(last[1]) * {"us": 0.001, "ms": 1, "s": 1000}[last[2]]}
