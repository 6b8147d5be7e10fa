"""Where the program `postcrash` starts. If its modules cannot be imported, its exit code is not that of a verdict."""

import contextlib
import sys
from typing import NoReturn

# The values of ExitCode, which may be among what cannot be imported.
INTERRUPTED = 2
INFRASTRUCTURE = 3


def main() -> NoReturn:
    """Run the command line. If a module cannot be imported, say which one, and what to do."""
    try:
        from postcrash.harness import cli
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (Exception, SystemExit) as error:
        with contextlib.suppress(OSError):
            print(f"postcrash: it is not installed as a whole: {error}", file=sys.stderr, flush=True)
            print("postcrash: install it anew; in a source checkout, make setup", file=sys.stderr, flush=True)
        sys.exit(INFRASTRUCTURE)
    cli.main()
