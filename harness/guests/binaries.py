"""Finds the Rust parts that postcrash runs: `crashdisk` and `postcrash-calls` on the host, `postcrash-agent` in the
guest, a library, and `xsync`, which runs on both. `xsync-canary` is there in a source checkout only.

`libpostcrash_xstate.so` is preloaded into user-mode Linux, so that it runs on every host (harness/guests/xstate).
"""

import os
from pathlib import Path

import postcrash
from postcrash.harness.errors import InfrastructureError

# Where cargo puts each program in a source checkout. The agent is built for a named target, because only then the flags
# that link it statically do not apply to build scripts. A dynamically linked agent in target/release must not be taken.
CHECKOUT_FOLDERS = {
    "crashdisk": "target/release",
    "postcrash-calls": "target/release",
    "postcrash-agent": "target/x86_64-unknown-linux-gnu/release",
    "libpostcrash_xstate.so": "target/release",
    "xsync": "target/x86_64-unknown-linux-gnu/release",
    "xsync-canary": "target/x86_64-unknown-linux-gnu/release",
}


class BinaryNotFoundError(InfrastructureError):
    """A Rust program of postcrash is in none of the folders where it may be."""


def find_binary(name: str) -> Path:
    """The path of the program `name`, a key of `CHECKOUT_FOLDERS`.

    If `POSTCRASH_BIN_DIR` is set, it is the only folder looked at. Otherwise an installed wheel's `postcrash/_bin`
    comes first, then the checkout's build folder. Raises `BinaryNotFoundError`, which says what to run.
    """
    if name not in CHECKOUT_FOLDERS:
        raise ValueError(f"no program is called {name!r}: there are {', '.join(CHECKOUT_FOLDERS)}")
    candidates = [folder / name for folder in _folders(name)]
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    places = ", ".join(str(candidate) for candidate in candidates)
    raise BinaryNotFoundError(f"{name} is not at {places}: {_advice()}")


def _folders(name: str) -> list[Path]:
    if override := os.environ.get("POSTCRASH_BIN_DIR"):
        return [Path(override)]
    package = Path(postcrash.__file__).resolve().parent
    return [package / "_bin", package.parent / CHECKOUT_FOLDERS[name]]


def _advice() -> str:
    if "POSTCRASH_BIN_DIR" in os.environ:
        return "unset POSTCRASH_BIN_DIR or point it to the folder that holds the program"
    return "in a source checkout run `make setup`, else install postcrash's wheel again"
