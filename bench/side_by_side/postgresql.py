"""PostgreSQL with clients that enter orders, server and clients on one machine by a UNIX socket, as in the paper."""

import re
import shutil
from pathlib import Path

from side_by_side.disks import run
from side_by_side.site import Site
from side_by_side.workload import Figures

CLIENTS = (1, 5, 10, 20)
_USER = "postgres"
_HERE = Path(__file__).parent
_MEASURED = re.compile(r"^clients (\d+)$.*?^tps = ([\d.]+)", re.MULTILINE | re.DOTALL)
_FUNCTIONS = """
set -e
export LC_ALL=C PATH="$PATH:$(echo /usr/lib/postgresql/*/bin)"
cd shop
start() {
    pg_ctl -D cluster -s -w -l log start -o "-c listen_addresses= -c unix_socket_directories='$PWD' \
        -c shared_buffers=256MB -c max_wal_size=256MB -c max_connections=50"
}
stop() { pg_ctl -D cluster -s -w -m fast stop; }
"""
_CREATE = """
initdb -D cluster -A trust --no-sync >log
start
createdb -h "$PWD" shop
psql -h "$PWD" -q -f warehouse.sql shop
stop
"""


def per_minute(clients: int) -> str:
    """The name of the figure for so many clients."""
    return f"PostgreSQL with {clients} {'client' if clients == 1 else 'clients'}, orders a minute"


def figures_of(output: str) -> Figures:
    """What pgbench has said for each number of clients."""
    return {per_minute(int(clients)): 60 * float(rate) for clients, rate in _MEASURED.findall(output)}


class PostgreSQL:
    """Orders a minute for each of `CLIENTS`, each measured for some seconds. `scratch` keeps the database."""

    name = "postgresql"

    def __init__(self, seconds: int, scratch: Path) -> None:
        self._seconds = seconds
        self._made = scratch / "shop"

    def set_up(self, folder: Path) -> None:
        """A copy of the database, which is made once."""
        if not self._made.exists():
            self._create()
        run("cp", "-a", self._made, folder)

    def _create(self) -> None:
        self._made.mkdir()
        for name in ("warehouse.sql", "new-order.sql"):
            shutil.copy(_HERE / name, self._made)
        run("chown", "-R", f"{_USER}:", self._made)
        as_user = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--"]
        run(*as_user, "sh", "-c", f"cd '{self._made.parent}'\n{_FUNCTIONS}{_CREATE}")

    def measure(self, site: Site) -> Figures:
        """Start the server, load it and stop it."""
        load = f'pgbench -h "$PWD" -n -M prepared -f new-order.sql -T {self._seconds} -c $clients shop'
        numbers = " ".join(map(str, CLIENTS))
        script = f"{_FUNCTIONS}\nstart\nfor clients in {numbers}; do echo clients $clients; {load}; done\nstop"
        return figures_of(site.run("sh", "-c", script, user=_USER).output)
