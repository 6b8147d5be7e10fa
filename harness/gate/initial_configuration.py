"""The first file of a gate, made for what this machine has."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from postcrash.harness.errors import HarnessError
from postcrash.harness.examination.session import Session
from postcrash.harness.guests.kernels.kernel import Kernel, image_version
from postcrash.harness.guests.kernels.suitability import why_unsuitable
from postcrash.reports.gate.fixed_lines import series_of
from postcrash.targets import Target

TARGETS_TRIED = ("ext4-current", "btrfs", "xfs")
"""The targets that the file names if this machine has them. Stock kernels show little on these that is not known."""
KNOWN_FILE = "postcrash-known.txt"
"""The file with known failures that the gate's file names."""
STOCKED_MAX = 2
"""The most stocked kernels that the file names, the newest ones, so that the first gate stays short."""
MINUTES = 10
"""The most time for each kernel that the file names."""
_BUILT = (Path("linux"), Path("arch/x86/boot/bzImage"))
"""Where a build of the kernel leaves user-mode Linux, and its image."""


def first_file(session: Session, folder: Path, schema: str, stocked: Sequence[str]) -> str:
    """The text of a gate's file for `folder`.

    `schema` is the path of the schema's file, for editors; `stocked` are names of kernels that were fetched or added,
    by version. The kernel that the user named, or those that were built in the folder, are what the gate is about, and
    no other is named beside them.

    Raises HarnessError if this machine has none of the targets.
    """
    targets = _targets(session)
    built = [f"./{path}" for path in _BUILT if _is_kernel(folder / path)]
    own = built if session.kernel_name is None else [_in_file(session.kernel_name, stocked)]
    kernels = own or _kernels(session, targets, stocked)
    others = [name for name in stocked if name not in kernels]
    names = [target.name for target in targets]
    place = session.kernel_name or (str(folder / built[0]) if len(built) == 1 else None)
    reference = _reference(session, place, targets, stocked)
    lines = _lines(names, kernels, others, sorted(_corpora(folder)), schema)
    return "".join(f"{line}\n" for line in (*lines, *_compared(reference)))


def _reference(session: Session, place: str | None, targets: Sequence[Target], stocked: Sequence[str]) -> str:
    """The name of a kernel with which the user's own, at `place`, is compared; empty if there is none.

    It is of the same series and runs with the same engine: what else changed from one series to the next would hide
    what a change did.
    """
    ours = _called(session, place) if place else None
    if ours is None:
        return ""
    for name in (series_of(ours.label), *reversed(stocked)):
        kernel = _called(session, name)
        if kernel is None or _family(kernel) != _family(ours):
            continue
        if session.build(kernel).content != session.build(ours).content and _runs(kernel, targets):
            return name
    return ""


def _in_file(name: str, stocked: Sequence[str]) -> str:
    """A kernel's name for the gate's file, where a file without a folder needs one to be told from a name."""
    return f"./{name}" if "/" not in name and name not in stocked and Path(name).is_file() else name


def _family(kernel: Kernel) -> tuple[str, str]:
    return kernel.engine.label, series_of(kernel.label)


def _compared(reference: str) -> Iterator[str]:
    if reference:
        yield ""
        yield "[parts.compared]                 # what the stock kernel never shows for the same workloads"
        yield "hunt = 1"
        yield f"expect = {_listed([f'kernel:{reference}'])}"


def _kernels(session: Session, targets: Sequence[Target], stocked: Sequence[str]) -> list[str]:
    """The installed kernel by its version, and the newest stocked ones that run all targets with the same engine.

    Empty if there is nothing to name beside the kernel that is used without a name. Another engine may be far slower,
    or not work here.
    """
    installed = session.kernel
    version = series_of(installed.label)
    if _called(session, version) != installed:
        return []
    found: list[str] = []
    for name in reversed(stocked):
        kernel = _called(session, name)
        if kernel is None or kernel.label == installed.label or kernel.engine.label != installed.engine.label:
            continue
        if len(found) < STOCKED_MAX and _runs(kernel, targets):
            found.append(name)
    return [version, *found] if found else []


def _called(session: Session, name: str) -> Kernel | None:
    """The kernel that a gate's file means by `name`; None if this machine has none, or cannot run it."""
    try:
        return next(session.kernels_called(name))
    except HarnessError:
        return None


def _runs(kernel: Kernel, targets: Sequence[Target]) -> bool:
    try:
        return all(why_unsuitable(kernel, target) is None for target in targets)
    except HarnessError:
        return False


def _targets(session: Session) -> list[Target]:
    found, reasons = [], []
    for name in TARGETS_TRIED:
        target = session.target(name)
        try:
            session.require(target, [target.recovery(walk=True, fsck=False)])
            found.append(target)
        except HarnessError as error:
            reasons.append(error)
    if not found:
        raise reasons[0]
    return found


def _is_kernel(path: Path) -> bool:
    return path.is_file() and (path.name == "linux" or image_version(path) is not None)


def _corpora(folder: Path) -> Iterator[str]:
    """Folders with workloads, at most one level down."""
    for place in (folder, *(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))):
        if any(place.glob("*.ops")):
            yield place.relative_to(folder).as_posix()


def _lines(
    targets: Sequence[str], kernels: Sequence[str], stocked: Sequence[str], corpora: Sequence[str], schema: str
) -> Iterator[str]:
    yield f"#:schema {schema}"
    yield "# What must hold before a change goes in: `postcrash gate` runs it. All settings: docs/gate.md"
    yield ""
    yield f"targets = [{_listed(targets)}]"
    if kernels:
        yield f"kernels = [{_listed(kernels)}]"
    else:
        yield '# kernels = ["6.1", "./linux"]   # versions of `postcrash kernels list`, or files'
    if stocked:
        yield f"# Kernels that are here, too: {_listed(stocked)}. With several, each part runs on each."
    yield 'expect = "practice"              # or documents, contract:FILE, kernel:NAME to compare with'
    yield '# hold = ["P5"]                  # properties that must hold whatever documents say'
    time = f'"{MINUTES * max(len(kernels), 1)}m"'
    yield f"time = {time:<24} # for all parts; what is left out is UNDECIDED, and goes first next time"
    yield f'baseline = "{KNOWN_FILE}" # known failures: `postcrash gate --accept WHY` adds them'
    yield ""
    yield "[parts.table]                    # the workloads of the properties P1 to P5"
    yield 'properties = ["hotdep13"]'
    yield ""
    yield "[parts.hunt]                     # the default hunt: what finds most bugs comes first"
    yield 'hunt = "default"'
    for number, place in enumerate(corpora, 1):
        yield ""
        yield f"[parts.own{number if len(corpora) > 1 else ''}]"
        yield f"corpus = {_listed([place])}"


def _listed(names: Sequence[str]) -> str:
    """Names as strings of TOML, which are written as those of JSON, with commas between them."""
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
