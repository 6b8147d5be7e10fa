"""What a finding must be before it goes into a bundle or comes out of one.

Its parts must belong together, so that nothing is shown that did not happen. Nothing in it may name a command that the
catalogue does not have, or a file of this machine: what a stranger made must not run here. And it must not cost too
much to look at.
"""

import json
import os
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pydantic

from postcrash._core import Interval, Recording, intervals, write_state
from postcrash.harness.auditing import folder_judge
from postcrash.harness.auditing.application_lookup import catalogued
from postcrash.harness.auditing.judge import ABOUT, TEST
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.provenance import Provenance
from postcrash.harness.examination.recording_metadata import described_target
from postcrash.harness.examination.session import JUDGE_NAMES
from postcrash.harness.files.scratch import scratch
from postcrash.harness.findings.minimize import plan_of
from postcrash.model import History, Observation, Workload, parse_workload
from postcrash.model.text import one_line
from postcrash.model.units import BLOCK_SECTORS
from postcrash.model.validation import first_objection, shown
from postcrash.recorders.events import WriteEvent, ZeroEvent, recording_events
from postcrash.reports.explanation.explanation import explain
from postcrash.store.json_codec import Json, to_plain
from postcrash.store.records import COMPARED, Finding, parse_state_id, recording_id, state_id
from postcrash.targets import TARGETS, VARIANTS, BaseImage, Target, image_id
from postcrash.targets.catalogue import SIZE_MIB_MAX

DISK_SECTORS_MAX = SIZE_MIB_MAX * 2048
COST_MAX = 5_000_000
"""The most that blocks written, times events, may come to. The largest recording so far comes to 320,000."""
_REASON_MAX = 500
_COMPARED = re.compile(rf"{COMPARED}(kernel|target):([A-Za-z0-9][\w.+-]*)")


class RefusedError(ValueError):
    """A finding cannot be in a bundle. The text says why."""


@dataclass(frozen=True, slots=True)
class BundleParts:
    """A finding with the files that it rests on.

    recording    its recording
    below        the recording of the crash state under it, if the crash came within recovery
    base         the base image, and `base_digest` the SHA-256 of its content
    """

    finding: Finding
    recording: Path
    below: Path | None
    base: Path
    base_digest: str

    @property
    def of_workload(self) -> Path:
        """The recording of the workload."""
        return self.below or self.recording

    def facts(self) -> Json:
        """What a manifest says of them and can be checked, as decoded JSON."""
        finding, recorded = self.finding, json.loads(Recording(self.of_workload).metadata)
        application = Provenance.from_wire(recorded).application
        told = {
            **{"finding": finding.id, "state": finding.state, "kernel": finding.kernel, "guest": finding.guest},
            "recording": _content(self.recording),
            "below": None if self.below is None else _content(self.below),
            "base": {"id": image_id(self.base_digest), "digest": self.base_digest, "bytes": self.base.stat().st_size},
            "application": None if application is None else application.name,
            "target": asdict(_target(recorded, finding)),
        }
        plain: Json = json.loads(json.dumps(told))
        return plain


def _target(recorded: Json, finding: Finding) -> Target:
    target = described_target(recorded, finding.id)
    if target is None:
        raise RefusedError("its recording does not describe its target")
    return target


def _content(path: Path) -> Json:
    digest = Recording(path).digest
    return {"id": recording_id(digest), "digest": digest, "bytes": path.stat().st_size}


def as_found(finding: Finding) -> Finding:
    """The finding without what was found out about it later."""
    return replace(finding, minimal=None, needed=None)


def admitted(parts: BundleParts) -> Finding:
    """The finding, with an explanation that was made here. Raises RefusedError if it cannot be in a bundle."""
    try:
        return _admitted(parts)
    except pydantic.ValidationError as error:
        raise RefusedError(first_objection(error)) from error
    except (UsageError, ValueError, LookupError, OverflowError, RecursionError) as error:
        raise RefusedError(textwrap.shorten(one_line(str(error)), _REASON_MAX, placeholder=" …")) from error


def _admitted(parts: BundleParts) -> Finding:
    finding = parts.finding
    recording, of_workload = Recording(parts.recording), Recording(parts.of_workload)
    _check_cost(recording)
    _check_cost(of_workload)
    metadata = json.loads(of_workload.metadata)
    recorded = Provenance.from_wire(metadata)
    target = _target(metadata, finding)
    workload = parse_workload(finding.workload_text, finding.workload_name)
    _check_text(finding, target)
    _check_ids(parts, recording, of_workload, recorded)
    _check_commands(target)
    _check_judge(finding)
    _check_programs(finding, workload, recorded)
    _check_recovery(finding, target)
    _check_identity(parts, target, metadata)
    History(workload, finding.started, finding.returned)
    if finding.observation is not None:
        Observation.from_wire(finding.observation)
    with _ground(parts) as ground:
        return _explained(finding, recording, ground)


def _check_cost(recording: Recording) -> None:
    """Crash states are counted in time and memory that grow with the blocks in flight at each event."""
    events = recording_events(recording)
    written = (event for event in events if isinstance(event, WriteEvent | ZeroEvent))
    blocks = sum(event.sectors // BLOCK_SECTORS + 1 for event in written)
    if recording.disk_sectors > DISK_SECTORS_MAX:
        limit = f"a guest's disk has at most {DISK_SECTORS_MAX}"
        raise RefusedError(f"its disk has {recording.disk_sectors} sectors, and {limit}")
    if blocks * len(events) > COST_MAX:
        raise RefusedError(f"its recording writes {blocks} blocks in {len(events)} events, which is too much")


def _check_text(finding: Finding, target: Target) -> None:
    """Whatever is printed as one line must be one line, and must do nothing to a terminal."""
    of_target = json.dumps(asdict(target), ensure_ascii=False)
    of_kernels = _texts([to_plain(finding.built), to_plain(finding.compared)])
    for text in (*of_kernels, finding.message, finding.kernel, finding.model, finding.workload_name, of_target):
        if not text.isprintable():
            raise RefusedError(f"expected text that can be printed, found {shown(text)}")


def _texts(plain: object) -> Iterator[str]:
    """All texts in decoded JSON, but for the names of fields."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, list | dict):
        for each in plain.values() if isinstance(plain, dict) else plain:
            yield from _texts(each)


def _check_ids(parts: BundleParts, recording: Recording, of_workload: Recording, recorded: Provenance) -> None:
    finding = parts.finding
    state = "" if finding.is_of_run else state_id(finding.recording, finding.interval, finding.choices)
    if state:
        parse_state_id(state)
    base = finding.base if parts.below is None else parse_state_id(finding.base)[0]
    content = image_id(parts.base_digest) if parts.below is None else recording_id(of_workload.digest)
    ids = (
        ("recording", finding.recording, recording_id(recording.digest)),
        ("crash state", finding.state, state),
        ("base", base, content),
        ("recorded base", recorded.base, image_id(parts.base_digest)),
    )
    for what, said, found in ids:
        if said != found:
            raise RefusedError(f"its {what} is {shown(said)}, but the content is that of {shown(found)}")


def _check_commands(target: Target) -> None:
    """A target that is not the catalogue's may differ from it in options and sizes, not in what is run.

    Its package is what the user is told to install.
    """
    catalogue = (*TARGETS, *VARIANTS)
    if target in catalogue:
        return
    alike = [known for known in catalogue if known.fstype == target.fstype]
    commands = (
        ("mkfs", target.mkfs[:1], {known.mkfs[:1] for known in alike}),
        ("after_mkfs", target.after_mkfs, {(), *(known.after_mkfs for known in alike)}),
        ("fsck", target.fsck, {(), *(known.fsck for known in alike)}),
        ("repair", target.repair, {(), *(known.repair for known in alike)}),
        ("helper", target.helper, {()}),
        ("files", target.files, {()}),
        ("modules", target.modules, {(), *(known.modules for known in alike)}),
        ("package", (target.package,), {("",), *((known.package,) for known in alike)}),
    )
    for what, command, known in commands:
        if command not in known:
            raise RefusedError(
                f"its target {target.name} has {what} = {shown(list(command))}, which no {target.fstype} of the "
                f"catalogue has"
            )


def _check_judge(finding: Finding) -> None:
    name = finding.checker
    compared = _COMPARED.fullmatch(name)
    is_file = compared is not None and (compared[2].endswith(".toml") or os.path.exists(compared[2]))
    if is_file or not (compared or name in (*JUDGE_NAMES, folder_judge.NAME)):
        raise RefusedError(f"there is no judge {shown(name)}")
    if finding.reference_outcome is not None and not compared:
        raise RefusedError(f"it says what a reference shows, but {shown(name)} compares with none")


def _check_programs(finding: Finding, workload: Workload, recorded: Provenance) -> None:
    """Programs must be those of an application of the catalogue, and none is run to see the finding again."""
    if not workload.runs_programs and finding.checker != folder_judge.NAME:
        return
    application = recorded.application
    if application is None:
        raise RefusedError("it runs a program of no application, and only those of the catalogue are run")
    if catalogued(application) is None:
        raise RefusedError(f"its check {shown(application.check)} is not of the catalogue, and no others are run")
    if finding.is_of_run or finding.reference_name:
        raise RefusedError("to see it again its workload would have to run a program")


def _check_recovery(finding: Finding, target: Target) -> None:
    if finding.is_of_run:
        return
    told = finding.recovery
    kind = target.recovery(walk=told.walk, fsck=bool(told.fsck), use=told.use_after, repair=told.is_repaired)
    own = replace(kind, map=told.map, bytes=told.bytes).to_wire()
    if json.loads(json.dumps(own)) != finding.recover:
        raise RefusedError(f"it was not recovered as {target.name} is: {shown(finding.recover)}")


def _check_identity(parts: BundleParts, target: Target, recorded: Json) -> None:
    """The id of a finding is a digest of what it is about, so that nothing else can take its place."""
    finding = parts.finding
    if target.name != finding.target:
        raise RefusedError(f"it is on {shown(finding.target)}, but was recorded on {target.name}")
    id = id_of(finding, target, BaseImage(parts.base, image_id(parts.base_digest)), recorded)
    if id != finding.id:
        raise RefusedError(f"it is called {shown(finding.id)}, but its content is that of {id}")


def id_of(finding: Finding, target: Target, base: BaseImage, recorded: Json) -> str:
    """The id that a finding must have if its workload was `recorded` so. Raises ValueError or UsageError."""
    plan = plan_of(
        finding,
        target,
        base=base,
        kernel=finding.kernel,
        guest=finding.guest,
        recoveries=None,
        recorded=Provenance.from_wire(recorded),
    )
    about = {name: recorded[name] for name in (ABOUT, TEST) if name in recorded}
    recover = None if finding.is_of_run else finding.recovery
    is_within = state_below(finding) is not None
    return replace(plan, about=about).finding_id(finding.checker, finding.message, recover, within_recovery=is_within)


@contextmanager
def _ground(parts: BundleParts) -> Iterator[Path]:
    """The disk on which the finding's recording was made: the base image, or the crash state under it."""
    if parts.below is None:
        yield parts.base
        return
    _, interval, choices = parse_state_id(parts.finding.base)
    with scratch() as folder:
        image = folder / "image"
        write_state(Recording(parts.below), parts.base, parts.finding.model, interval, choices, image)
        yield image


def _explained(finding: Finding, recording: Recording, ground: Path) -> Finding:
    """The finding with its explanation, if it has the crash state that it names."""
    known = intervals(recording, ground, finding.model)
    if finding.is_of_run and not known:
        return replace(finding, explanation=None)
    if not 0 <= finding.interval < len(known):
        raise RefusedError(f"it has crash interval {finding.interval}, and its recording has {len(known)}")
    _check_losses(finding, known[finding.interval])
    return replace(finding, explanation=explain(finding, recording, ground))


def _check_losses(finding: Finding, interval: Interval) -> None:
    losses = tuple(interval.lost(finding.choices)), interval.torn(finding.choices)
    if losses != (finding.lost, finding.torn):
        raise RefusedError(f"its crash state loses {shown(losses)}, not {shown((finding.lost, finding.torn))}")
