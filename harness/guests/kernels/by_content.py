"""Finds kernels of this machine by content, because another build may have the same version or name."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from postcrash.harness.errors import HarnessError
from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.kernels.copies import copies, mark_used
from postcrash.harness.guests.kernels.kernel import Kernel, find_kernel, uml_program
from postcrash.harness.guests.kernels.stock import Stock, kernel_of_copy

_Place = tuple[Path, Callable[[], Kernel]]


def kernels_here(cache: Path) -> Iterator[Kernel]:
    """Every kernel of this machine that can be run here: the installed one, those of the stock, and copies of files.

    Raises InfrastructureError if the stock is damaged.
    """
    for _, made in _places(cache):
        with suppress(HarnessError):
            yield made()


def kernels_with(content: str, cache: Path) -> Iterator[Kernel]:
    """Those of `kernels_here` whose file has this SHA-256. Raises as it does."""
    for path, made in _places(cache):
        with suppress(HarnessError):
            if content_digest(path) == content:
                yield made()


def _places(cache: Path) -> Iterator[_Place]:
    """The file of each kernel, and what makes the kernel of it."""
    installed = uml_program()
    if installed is not None:
        yield installed, find_kernel
    for stocked in Stock(cache).all():
        yield stocked.path, partial(stocked.kernel, cache)
    for copy in copies(cache):
        yield copy, partial(_copied, copy, cache)


def _copied(copy: Path, cache: Path) -> Kernel:
    kernel = kernel_of_copy(copy, cache)
    mark_used(copy)
    return kernel
