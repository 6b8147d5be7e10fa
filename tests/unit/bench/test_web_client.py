"""A client of the web mix reads no faster than it may, and takes no answer but a good one."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from side_by_side import web
from side_by_side.site import WorkloadError

BYTES = 10_000


class Handler(BaseHTTPRequestHandler):
    """Answers everything with a status and some bytes."""

    protocol_version = "HTTP/1.1"
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(BYTES))
        self.end_headers()
        self.wfile.write(b"x" * BYTES)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class QuietServer(ThreadingHTTPServer):
    """Does not mind clients that go away."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing."""


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Handler]]:
    """The handler of a server that clients find."""
    made = type("Made", (Handler,), {})
    with QuietServer(("127.0.0.1", 0), made) as server:
        monkeypatch.setattr(web, "ADDRESS", "127.0.0.1")
        monkeypatch.setattr(web, "_PORT", server.server_port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()


def test_a_client_reads_at_its_rate(handler: type[Handler]) -> None:
    client = web.Client(1, time.monotonic() + 0.7).run()
    spent = [seconds for of_size in client.spent.values() for seconds in of_size]
    assert spent and min(spent) >= BYTES / 50_000
    assert client.received >= BYTES * len(spent)


def test_another_status_is_no_answer(handler: type[Handler]) -> None:
    handler.status = 404
    with pytest.raises(WorkloadError, match="404"):
        web.Client(1, time.monotonic() + 5).run()


def test_a_server_that_answers_404_is_not_there_yet(handler: type[Handler], monkeypatch: pytest.MonkeyPatch) -> None:
    handler.status = 404
    monkeypatch.setattr(web, "_START_S", 0.3)
    with pytest.raises(WorkloadError):
        web.wait_for_server()
    handler.status = 200
    web.wait_for_server()
