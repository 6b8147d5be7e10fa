"""The first file of a gate, made for what this machine has."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from postcrash.harness.errors import HarnessError
from postcrash.harness.guests.kernel import image_version
from postcrash.harness.session import Session

TARGETS_TRIED = ("ext4-current", "btrfs", "xfs")
"""The targets that the file names if this machine has them. Stock kernels show little on these that is not known."""
KNOWN_FILE = "postcrash-known.txt"
"""The file with known failures that the gate's file names."""
_BUILT = (Path("linux"), Path("arch/x86/boot/bzImage"))
"""Where a build of the kernel leaves user-mode Linux, and its image."""


def first_file(session: Session, folder: Path, schema: str, stocked: Sequence[str]) -> str:
    """The text of a gate's file for `folder`.

    `schema` is the path of the schema's file, for editors; `stocked` are names of kernels that were fetched or added.

    Raises HarnessError if this machine has none of the targets.
    """
    targets = _targets(session)
    kernels = [f"./{path}" for path in _BUILT if _is_kernel(folder / path)]
    return "".join(f"{line}\n" for line in _lines(targets, kernels, stocked, sorted(_corpora(folder)), schema))


def _targets(session: Session) -> list[str]:
    found, reasons = [], []
    for name in TARGETS_TRIED:
        target = session.target(name)
        try:
            session.require(target, [target.recovery(walk=True, fsck=False)])
            found.append(name)
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
    yield 'time = "10m"                     # for all parts; what is left out is UNDECIDED, and goes first next time'
    yield f'baseline = "{KNOWN_FILE}" # known failures: `postcrash gate --accept WHY` adds them'
    yield ""
    yield "[parts.table]                    # the workloads of the properties P1 to P5"
    yield 'properties = ["hotdep13"]'
    yield ""
    yield "[parts.small]                    # every workload of one operation"
    yield "hunt = 1"
    for number, place in enumerate(corpora, 1):
        yield ""
        yield f"[parts.own{number if len(corpora) > 1 else ''}]"
        yield f"corpus = {_listed([place])}"


def _listed(names: Sequence[str]) -> str:
    """Names as strings of TOML, which are written as those of JSON, with commas between them."""
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
