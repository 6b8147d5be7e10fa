"""Makes the initial configuration of a gate from the targets, kernels and workloads of this machine."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from postcrash.harness.errors import HarnessError
from postcrash.harness.examination.session import Session
from postcrash.harness.guests.kernels.kernel import Kernel, image_version
from postcrash.harness.guests.kernels.suitability import why_unsuitable
from postcrash.store.gate_run import series_of
from postcrash.targets import Target

TARGETS_TRIED = ("ext4-current", "btrfs", "xfs")
"""The targets of the file, as far as this machine has them. Stock kernels show few new failures on them."""
KNOWN_FILE = "postcrash-known.txt"
"""The file with known failures."""
STOCKED_MAX = 2
"""The most stocked kernels that the file names, the newest ones, so that the first gate stays short."""
MINUTES = 10
"""The most time for each kernel that the file names."""
_BUILT = (Path("linux"), Path("arch/x86/boot/bzImage"))
"""Where a build of the kernel leaves user-mode Linux, and its image."""
_TEMPLATE = """\
#:schema {schema}
# What must hold before a change goes in: `postcrash gate` runs it. All settings: docs/gate.md

targets = [{targets}]
{kernels}
expect = "practice"              # or documents, contract:FILE, kernel:NAME to compare with
# hold = ["P5"]                  # properties that must hold whatever documents say
time = {time:<24} # for all parts; what is left out is UNDECIDED, and goes first next time
baseline = "{baseline}" # known failures: `postcrash gate --accept WHY` adds them

[parts.table]                    # the workloads of the properties P1 to P5
properties = ["hotdep13"]

[parts.hunt]                     # the default hunt: what finds most bugs comes first
hunt = "default"
"""
_COMPARED = """
[parts.compared]                 # what the stock kernel never shows for the same workloads
hunt = 1
expect = {reference}
"""


def initial_configuration(session: Session, folder: Path, schema: str, stocked: Sequence[str]) -> str:
    """The text of a gate's file for `folder`.

    `schema` is the path of the schema's file, for editors. `stocked` are names of kernels that were fetched or added,
    by version. If the user named a kernel, or kernels were built in the folder, the file names only these.

    Raises HarnessError if this machine has none of the targets.
    """
    targets = _targets(session)
    built = [f"./{path}" for path in _BUILT if _is_kernel(folder / path)]
    own = built if session.kernel_name is None else [_name_in_file(session.kernel_name, stocked)]
    kernels = own or _kernels(session, targets, stocked)
    others = [name for name in stocked if name not in kernels]
    kernel_lines = [
        f"kernels = [{_toml_strings(kernels)}]"
        if kernels
        else '# kernels = ["6.1", "./linux"]   # versions of `postcrash kernels list`, or files'
    ]
    if others:
        kernel_lines.append(
            f"# Kernels that are here, too: {_toml_strings(others)}. With several, each part runs on each."
        )
    text = _TEMPLATE.format(
        schema=schema,
        targets=_toml_strings([target.name for target in targets]),
        kernels="\n".join(kernel_lines),
        time=f'"{MINUTES * max(len(kernels), 1)}m"',
        baseline=KNOWN_FILE,
    )
    corpora = sorted(_corpora(folder))
    for number, place in enumerate(corpora, 1):
        text += f"\n[parts.own{number if len(corpora) > 1 else ''}]\ncorpus = {_toml_strings([place])}\n"
    place = session.kernel_name or (str(folder / built[0]) if len(built) == 1 else "")
    if reference := _reference(session, place, targets, stocked):
        text += _COMPARED.format(reference=_toml_strings([f"kernel:{reference}"]))
    return text


def _reference(session: Session, place: str, targets: Sequence[Target], stocked: Sequence[str]) -> str:
    """The name of a kernel with which the user's own, at `place`, is compared; empty if there is none.

    It is of the same series and runs with the same engine: other changes between series would hide what a change did.
    """
    own = _kernel_called(session, place) if place else None
    if own is None:
        return ""
    for name in (series_of(own.label), *reversed(stocked)):
        kernel = _kernel_called(session, name)
        if kernel is None or _family(kernel) != _family(own):
            continue
        if session.build(kernel).content != session.build(own).content and _runs(kernel, targets):
            return name
    return ""


def _name_in_file(name: str, stocked: Sequence[str]) -> str:
    """A kernel's name for the gate's file, where the path of a file has a slash."""
    return f"./{name}" if "/" not in name and name not in stocked and Path(name).is_file() else name


def _family(kernel: Kernel) -> tuple[str, str]:
    return kernel.engine.label, series_of(kernel.label)


def _kernels(session: Session, targets: Sequence[Target], stocked: Sequence[str]) -> list[str]:
    """The installed kernel by its version, and the newest stocked ones that run all targets with the same engine.

    Empty if only the kernel that is used without a name is left. Another engine may be far slower, or not work here.
    """
    installed = session.kernel
    version = series_of(installed.label)
    if _kernel_called(session, version) != installed:
        return []
    found: list[str] = []
    for name in reversed(stocked):
        kernel = _kernel_called(session, name)
        if kernel is None or kernel.label == installed.label or kernel.engine.label != installed.engine.label:
            continue
        if len(found) < STOCKED_MAX and _runs(kernel, targets):
            found.append(name)
    return [version, *found] if found else []


def _kernel_called(session: Session, name: str) -> Kernel | None:
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
    found, errors = [], []
    for name in TARGETS_TRIED:
        target = session.target(name)
        try:
            session.require(target, [target.recovery(walk=True, fsck=False)])
            found.append(target)
        except HarnessError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return found


def _is_kernel(path: Path) -> bool:
    return path.is_file() and (path.name == "linux" or image_version(path) is not None)


def _corpora(folder: Path) -> Iterator[str]:
    """Folders with workloads, at most one level down."""
    folders = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    for place in (folder, *folders):
        if any(place.glob("*.ops")):
            yield place.relative_to(folder).as_posix()


def _toml_strings(names: Sequence[str]) -> str:
    """Names as strings of TOML, which are written as those of JSON, with commas between them."""
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
