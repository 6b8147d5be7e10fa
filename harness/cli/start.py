"""Where the program `postcrash` starts. If its modules cannot be imported, its exit code is not that of a verdict."""

import contextlib
import os
import sys
from typing import NoReturn

# The values of ExitCode, which may be among what cannot be imported.
INTERRUPTED = 2
INFRASTRUCTURE = 3


def main() -> NoReturn:
    """Run the command line. If a module cannot be imported, say which one, and what to do."""
    try:
        from postcrash.harness.cli import main as cli
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (Exception, SystemExit) as error:
        _say(f"it is not installed as a whole: {error}", "install it anew; in a source checkout, make setup")
        sys.exit(INFRASTRUCTURE)
    cli.main()


def _say(*lines: str) -> None:
    """Print lines to standard error at once. What cannot be printed is dropped: as Python ends, it would try again,
    fail, and replace the exit code.
    """
    with contextlib.suppress(OSError):
        os.write(2, "".join(f"postcrash: {line}\n" for line in lines).encode(errors="replace"))
