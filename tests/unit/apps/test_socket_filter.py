"""A check that can make no socket reaches nobody, whichever way it asks the kernel."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from postcrash.apps import Folder, Limits, Sandbox
from postcrash.model import Entry, Tree
from postcrash.model.tree import ROOT_PATH

pytestmark = pytest.mark.slow
EMPTY = Folder.of(Tree([Entry(ROOT_PATH, "dir")]))
CALL = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); print(libc.syscall({}), ctypes.get_errno())"
SOCKET, IO_URING_SETUP, X32 = 41, 425, 0x40000000
INT_0X80 = """
import ctypes, mmap
code = bytes.fromhex("53 b867010000 bb02000000 b901000000 31d2 cd80 5b c3")  # socket(AF_INET, SOCK_STREAM, 0) of i386
page = mmap.mmap(-1, len(code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
print("made", ctypes.CFUNCTYPE(ctypes.c_int)(at)())
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(Limits(seconds=10, sockets=False)) as made:
        yield made


def said(sandbox: Sandbox, program: str) -> str:
    return sandbox.run(EMPTY, f"/usr/bin/python3 - <<'END' 2>&1\n{program}\nEND", []).output.strip()


def test_it_does_what_needs_no_socket(sandbox: Sandbox) -> None:
    assert said(sandbox, "print(open('/proc/self/stat').read() != '', len(__import__('os').listdir('.')))") == "True 0"


def test_it_reaches_no_server_of_this_machine(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        assert said(sandbox, connect).endswith("PermissionError: [Errno 13] Permission denied")


@pytest.mark.parametrize("made", ["socket(AF_UNIX)", "socket(AF_NETLINK, SOCK_RAW)", "socketpair(AF_UNIX, SOCK_DGRAM)"])
def test_it_makes_no_socket(sandbox: Sandbox, made: str) -> None:
    assert said(sandbox, f"from socket import *; {made}").endswith("PermissionError: [Errno 13] Permission denied")


def test_a_namespace_of_its_own_gives_it_none(sandbox: Sandbox) -> None:
    made = "unshare --user --net /usr/bin/python3 -c 'import socket; socket.socket()' 2>&1"
    assert "PermissionError" in sandbox.run(EMPTY, made, []).output


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (f"{SOCKET}, 2, 1, 0", errno.EACCES),
        (f"{X32 | SOCKET}, 2, 1, 0", errno.ENOSYS),
        (f"{IO_URING_SETUP}, 1, 0", errno.ENOSYS),
    ],
)
def test_it_makes_none_by_another_call(sandbox: Sandbox, call: str, error: int) -> None:
    assert said(sandbox, CALL.format(call)) == f"-1 {error}"


def test_it_makes_none_by_the_calls_of_another_architecture(sandbox: Sandbox) -> None:
    assert said(sandbox, INT_0X80) == f"made -{errno.EACCES}"


def test_a_program_of_32_bits_runs(sandbox: Sandbox) -> None:
    getpid = INT_0X80.replace("b867010000", "b814000000")
    first, second = said(sandbox, f"{getpid}\nimport os; print('made', os.getpid())").splitlines()
    assert first == second


def test_it_sees_nothing_of_the_machine_s_network(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listening = f":{server.getsockname()[1]:04X} "
        assert listening in Path("/proc/net/tcp").read_text()
        assert listening not in said(sandbox, "print(open('/proc/net/tcp').read())")
    assert said(sandbox, "print(open('/proc/net/dev').read().count(':'))") == "1"  # the loopback


def test_it_leaves_nothing_in_the_network_that_others_share(sandbox: Sandbox) -> None:
    modes = "stat -c %a /proc/net/arp /proc/net/stat"
    before = sandbox.run(EMPTY, modes, []).output
    sandbox.run(EMPTY, "chmod 123 /proc/net/arp; chmod 700 /proc/net/stat", [])
    assert sandbox.run(EMPTY, modes, []).output == before == "444\n555\n"


def test_it_can_write_to_its_streams_by_name(sandbox: Sandbox) -> None:
    assert sandbox.run(EMPTY, "echo told >/dev/stderr; echo more >>/proc/self/fd/1", []).output == "told\nmore\n"


def test_where_no_network_can_be_made_for_all_each_check_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin/nowhere")
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/bwrap")
    with Sandbox(Limits(seconds=10, sockets=False)) as alone:
        listening = "import os; print(os.readlink('/proc/self/ns/net'))"
        monkeypatch.undo()
        networks = {said(alone, listening) for _ in range(2)}
    assert os.readlink("/proc/self/ns/net") not in networks


def test_a_sandbox_with_sockets_has_them_in_a_network_of_its_own() -> None:
    """What the tests above see is not how a machine without sockets answers."""
    with Sandbox(Limits(seconds=10)) as sandbox, socket.create_server(("127.0.0.1", 0)) as server:
        assert said(sandbox, "from socket import *; print(len(socketpair()), socket().fileno() > 0)") == "2 True"
        connect = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        assert "ConnectionRefusedError" in said(sandbox, connect)
