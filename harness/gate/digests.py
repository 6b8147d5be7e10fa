"""Digests of what the results of a gate rest on, so that results of different things are not merged."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from postcrash.harness.auditing.application_choice import name_and_parameters
from postcrash.harness.examination.campaign import programs_digest, sources_digest
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import CONTRACT, KERNEL, TARGET
from postcrash.harness.files.digest import content_digest
from postcrash.harness.gate.configuration import ApplicationPart, CorpusPart, GateFile
from postcrash.harness.gate.planning import PlannedPart
from postcrash.targets import Target


def digests_of(
    session: Session, file: Path, gate: GateFile, names: Sequence[str], planned: Sequence[PlannedPart]
) -> dict[str, str]:
    """Digests of everything that the results of the `planned` parts rest on, by the names that errors have for it.

    `file` is the gate's file, and `names` are the sections that are run; none for all. Kernels and targets are those of
    the planned parts, because a shard can have no workload of a part. Files are those of all sections that are run.
    Raises HarnessError.
    """
    found = {"postcrash": sources_digest(), "postcrash's programs": programs_digest()}
    for part in planned:
        found |= dict(_of_target(session, part.target, is_run=part.kernel is not None))
        found |= dict(_of_kernels(session, part))
    for other in sorted(_reference_targets(planned)):
        found |= dict(_of_target(session, session.target(other), ", with which others are compared"))
    for path in _files(file, gate, names):
        found |= {f"folder {path}" if path.is_dir() else f"file {path}": _path_digest(path)}
    return found


def _of_target(session: Session, target: Target, role: str = "", *, is_run: bool = True) -> Iterator[tuple[str, str]]:
    """The target and, if it is run, the origin of its base image. Its other programs are in the kernel's guests."""
    yield f"target {target.name}{role}", target.digest()
    if is_run:
        yield f"base image of {target.name}{role}", session.base_origin(target)


def _of_kernels(session: Session, part: PlannedPart) -> Iterator[tuple[str, str]]:
    """The part's kernel, and the kernel that it is compared with. A label can be that of several kernels."""
    kernel, target = part.kernel, part.target
    if kernel is None:
        return
    name = f"kernel {part.kernel_name} ({kernel.label}) for {target.name}"
    yield name, content_digest(kernel.path)
    yield f"{name}, with its modules and programs", session.guest(kernel)
    level, _, other = part.expected.name.partition(":")
    if level == KERNEL and part.application is None:
        reference = session.kernel_for(other, target)
        if reference is not None:
            yield f"kernel {other}, with which {target.name} is compared", session.guest(reference)


def _reference_targets(planned: Sequence[PlannedPart]) -> set[str]:
    levels = (part.expected.name.partition(":") for part in planned if part.application is None)
    return {name for level, _, name in levels if level == TARGET}


def _files(file: Path, gate: GateFile, names: Sequence[str]) -> Iterator[Path]:
    """The gate's file, the baseline, and files and folders of sections, as seen from the working folder."""
    yield from (file, file.parent / gate.baseline)
    for name in names or gate.parts:
        section = gate.parts[name]
        yield from (file.parent / target for target in gate.setting(section, "targets") if target.endswith(".toml"))
        if isinstance(section, ApplicationPart):
            application, _ = name_and_parameters(section.application)
            if application.endswith(".toml"):
                yield file.parent / application
            continue
        if isinstance(section, CorpusPart):
            yield file.parent / section.corpus
        level, _, value = gate.setting(section, "expect").partition(":")
        if level == CONTRACT:
            yield Path(value)


def _path_digest(path: Path) -> str:
    """SHA-256 of a file, or of the workloads in a folder. A file that is not there counts as empty."""
    if path.is_dir():
        workloads = "".join(f"{file.name}\0{content_digest(file)}\n" for file in sorted(path.glob("*.ops")))
        return hashlib.sha256(workloads.encode(errors="surrogatepass")).hexdigest()
    return content_digest(path) if path.exists() else hashlib.sha256().hexdigest()
