"""Readers with a planted fault each, by which the harness is tested."""

import os
from pathlib import Path

from .target import FuzzTarget, text

_SEEDS = text("size=12", "name=abc")


def _out_of_bounds(file: Path) -> None:
    content = file.read_bytes()
    if content[:1] == b"s" and b"=" not in content[:8]:
        content[len(content)]


def _endless(file: Path) -> None:
    content = file.read_bytes()
    while content.startswith(b"s") and not content.endswith(b"\n"):
        pass


def _greedy(file: Path) -> None:
    digits = file.read_bytes().removeprefix(b"size=").split(b"\n")[0]
    if digits.isdigit() and len(digits) < 20:
        bytes(int(digits) % 2**63)


def _killed(file: Path) -> None:
    if b"\xff" in file.read_bytes():
        os.abort()


def _talkative(file: Path) -> None:
    content = file.read_bytes()
    if not content.startswith(b"size="):
        raise ValueError("no size: " + content.decode("latin-1"))


def _sound(file: Path) -> None:
    try:
        file.read_bytes().decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None


PLANTED = {
    target.name: target
    for target in (
        FuzzTarget("planted-index", _SEEDS, _out_of_bounds, (ValueError,)),
        FuzzTarget("planted-loop", _SEEDS, _endless, (ValueError,), cpu_seconds=1),
        FuzzTarget("planted-memory", _SEEDS, _greedy, (ValueError,)),
        FuzzTarget("planted-abort", _SEEDS, _killed, (ValueError,)),
        FuzzTarget("planted-lines", _SEEDS, _talkative, (ValueError,)),
        FuzzTarget("planted-nothing", _SEEDS, _sound, (ValueError,)),
    )
}
