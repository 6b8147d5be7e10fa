"""The results that reports show: cells of tables and findings, with their ids.

Ids are short and depend only on what they identify: a finding on a target and a kernel has the same id in every run.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from postcrash.model import Verdict
from postcrash.model.numbers import DIGITS_MAX
from postcrash.model.validation import shown
from postcrash.properties.adversary import BY_WORKLOAD, Adversary
from postcrash.properties.promises import Statements
from postcrash.store.consoles import Casualty
from postcrash.store.explanation_data import Explanation
from postcrash.store.json_codec import Json, JsonObject, PlainError, from_plain, to_plain
from postcrash.store.kernel_build import ComparedWith, KernelBuild
from postcrash.targets import RecoveryKind

Choices = tuple[tuple[int, int], ...]

_FINDING_ID = re.compile(r"f-[0-9a-f]{16}")
_RECORDING_ID = re.compile(r"r-[0-9a-f]{16}")
_BASE_ID = re.compile(r"b-[0-9a-f]{16}")
_STATE_ID = re.compile(r"(r-[0-9a-f]{16})/(0|[1-9][0-9]*)/(-|[0-9.,]+)")
_CHOICE = re.compile(r"(0|[1-9][0-9]*)\.([1-9][0-9]*)")
_DECIMAL = re.compile(rf"[0-9]{{1,{DIGITS_MAX}}}")
_NUMBER_MAX = 2**32 - 1
COMPARED = "same-as:"
"""Prefix of the names of judges that compare with a reference (`kernel:6.1`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(JsonObject):
    """A cell of a table: whether `target` has `property`.

    states      crash states that the verdict covers, exactly
    recoveries  recoveries run for them
    outcomes    different observations among them, summed over workloads
    workloads   workloads that were recorded; 0 if the target lacks something that all of them need
    relevant    workloads in which the property's premise was true somewhere
    witness     id of a finding that violates the property
    reason      why it is undecided, what bounds it, or empty
    statements  of documents about it; they are not part of the evidence
    adversary   the weakest adversary that breaks it, if it is VIOLATED; otherwise the strongest that was tried
    guest       digest of the guest, which tells its kernel from another of that name; empty if nothing was run
    """

    target: str
    property: str
    verdict: Verdict
    states: int
    recoveries: int
    outcomes: int
    workloads: int
    relevant: int
    witness: str | None
    reason: str
    kernel: str
    model: str
    statements: Statements
    adversary: Adversary = BY_WORKLOAD[-1]
    guest: str = ""

    @staticmethod
    def without_runs(target: str, prop: str, *, reason: str, kernel: str, model: str, statements: Statements) -> "Cell":
        """Returns a cell for which no workload was recorded, with the reason."""
        return Cell(
            target=target,
            property=prop,
            verdict=Verdict.UNDECIDED,
            states=0,
            recoveries=0,
            outcomes=0,
            workloads=0,
            relevant=0,
            witness=None,
            reason=reason,
            kernel=kernel,
            model=model,
            statements=statements,
        )

    def to_json(self) -> Json:
        """Returns the cell as decoded JSON. `states` is decimal text, because it can be too large for JSON readers."""
        plain = {name: field for name, field in to_plain(self).items() if name != "statements"}
        return {**plain, "states": str(self.states), **standing_json(self.statements, self.verdict)}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Returns the cell from which `to_json` made `value`. Raises `PlainError`."""
        if not isinstance(value, dict):
            raise PlainError("cell", "an object", value)
        states = value.get("states")
        if not isinstance(states, str) or not _DECIMAL.fullmatch(states):
            raise PlainError("cell.states", "a decimal number in quotes", states)
        statements = {name: value[name] for name in ("promise", "denial") if name in value}
        rest = {name: field for name, field in value.items() if name not in ("promise", "denial", "standing")}
        cell = from_plain(cls, {**rest, "states": int(states), "statements": statements}, "cell")
        expected = standing_json(cell.statements, cell.verdict)["standing"]
        if value.get("standing", "") != expected:
            raise PlainError("cell.standing", str(expected), value.get("standing", ""))
        return cell


def standing_json(statements: Statements, verdict: Verdict) -> Json:
    """Returns as decoded JSON the rule that promises, the rule that denies, and the standing of the verdict."""
    return {**to_plain(statements), "standing": to_plain(statements.standing(verdict))}


@dataclass(frozen=True, slots=True)
class Finding(JsonObject):
    """A crash state that violates a judge, or a workload that kills the guest, with everything needed to replay it.

    checker        name of the property or checker that objects
    workload_text  the workload that was recorded, in the `.ops` language
    recording      id of the recording, base: id of the base image, state: id of the crash state
    interval       the crash interval, and choices: (component, version) of the state; versions of 0 are not named
    lost           pieces in flight in the interval that the state lost, as indices; torn: writes that it kept in part
    started        operations (set-up included) that had been started, and returned: those that had returned
    observation    the agent's report, decoded JSON; None if every guest was lost
    casualty       how the guests were lost; None if they were not
    recover        the command that the agent got, decoded JSON; empty if the guests were lost while they ran the
                   workload: then `recording` ends there, and there is no crash state, so `state` is empty too
    guest          digest of the guest, which tells its kernel from another of that name; empty if not known
    minimal        id of the finding with the smallest workload that breaks the same judge, if it was searched for
    needed         of the lost pieces those that matter, as (sector, sectors): if one is kept and all else stays, the
                   judge does not object; None if it was not tried
    built          the build of the kernel; None if it is not known
    compared       what its judge compared with; None if it does not compare, or if it is not known
    reference_outcome  if the judge compares: of the outcomes that the reference shows at the instant, the nearest to
                   the observation, as decoded JSON (mount and tree only); None if it shows none there
    """

    id: str
    checker: str
    message: str
    target: str
    kernel: str
    model: str
    workload_name: str
    workload_text: str
    recording: str
    base: str
    state: str
    interval: int
    choices: Choices
    lost: tuple[int, ...]
    torn: int
    started: int
    returned: int
    observation: Json | None
    casualty: Casualty | None
    recover: Json
    explanation: Explanation | None = None
    minimal: str | None = None
    guest: str = ""
    needed: tuple[tuple[int, int], ...] | None = None
    built: KernelBuild | None = None
    compared: ComparedWith | None = None
    reference_outcome: Json | None = None

    @property
    def reference_name(self) -> str:
        """The name of the reference that its judge compares with, such as `kernel:6.1`; empty for other judges."""
        return self.checker.removeprefix(COMPARED) if self.checker.startswith(COMPARED) else ""

    @property
    def is_of_run(self) -> bool:
        """Whether the guests were lost while they ran the workload: there is no crash state."""
        return not self.recover

    @property
    def is_repaired(self) -> bool:
        """Whether a program ran before the mount."""
        return bool(self.recover.get("repair"))

    @property
    def recovery(self) -> RecoveryKind:
        """The kind of recovery of the crash state. Raises ValueError if `recover` is not valid."""
        return RecoveryKind.from_wire(self.recover)


Simplicity = tuple[int, int, int, int, tuple[int, ...]]


class CrashState(Protocol):
    """The fields of a crash state that determine its simplicity, as in `Finding`."""

    @property
    def lost(self) -> tuple[int, ...]: ...
    @property
    def torn(self) -> int: ...
    @property
    def started(self) -> int: ...
    @property
    def interval(self) -> int: ...


def simplicity(state: CrashState) -> Simplicity:
    """Sort key of crash states: fewest lost pieces, fewest torn writes, fewest operations started, lowest interval.

    The lost pieces come last, so that different contents of a recording's crash intervals never compare equal.
    """
    return len(state.lost), state.torn, state.started, state.interval, state.lost


class IdError(ValueError):
    """A text is not an id of the expected kind. The message shows the text."""


def finding_id(parts: Iterable[str]) -> str:
    """Returns the id of the finding with these `parts`: `f-` and 16 hexadecimal digits of their SHA-256."""
    return named_by("f", parts)


def named_by(letter: str, parts: Iterable[str]) -> str:
    """Returns the id of an object with these parts: the letter, `-` and 16 hexadecimal digits of their SHA-256."""
    lengths = "".join(f"{len(part)}:{part}" for part in parts)
    return f"{letter}-" + hashlib.sha256(lengths.encode(errors="surrogatepass")).hexdigest()[:16]


def recording_id(digest: str) -> str:
    """Returns the id of the recording with this SHA-256 (hexadecimal): `r-` and its first 16 digits."""
    return check_recording_id(f"r-{digest[:16].lower()}")


def is_recording_id(text: str) -> bool:
    """Whether `text` has the form of a recording's id."""
    return _RECORDING_ID.fullmatch(text) is not None


def check_recording_id(text: str) -> str:
    """Returns `text` itself. Raises `IdError` unless it has the form of a recording's id."""
    return _matching(text, _RECORDING_ID, "a recording's id (r- and 16 hexadecimal digits)")


def is_finding_id(text: str) -> bool:
    """Whether `text` has the form of a finding's id."""
    return _FINDING_ID.fullmatch(text) is not None


def check_base_id(text: str) -> str:
    """Returns `text` itself. Raises `IdError` unless it has the form of a base image's id."""
    return _matching(text, _BASE_ID, "a base image's id (b- and 16 hexadecimal digits)")


def check_finding_id(text: str) -> str:
    """Returns `text` itself. Raises `IdError` unless it has the form of a finding's id."""
    return _matching(text, _FINDING_ID, "a finding's id (f- and 16 hexadecimal digits)")


def _matching(text: str, form: re.Pattern[str], expected: str) -> str:
    if not form.fullmatch(text):
        raise IdError(f"expected {expected}, found {shown(text)}")
    return text


def state_id(recording: str, interval: int, choices: Sequence[tuple[int, int]]) -> str:
    """Returns the id of a crash state: recording, interval, and `component.version` for each version that is not 0.

    Examples are `r-0123456789abcdef/3/0.1,4.2`, and `r-0123456789abcdef/3/-` for the state that keeps all that it can.
    """
    deviations = sorted((component, version) for component, version in choices if version)
    shown_choices = ",".join(f"{component}.{version}" for component, version in deviations)
    return f"{check_recording_id(recording)}/{interval}/{shown_choices or '-'}"


def parse_state_id(text: str) -> tuple[str, int, Choices]:
    """Returns recording, interval and choices (without those of version 0) of a state id. Raises `IdError`."""
    match = _STATE_ID.fullmatch(text)
    if match is None:
        raise IdError(f"expected a crash state's id like r-0123456789abcdef/3/0.1,4.2, found {shown(text)}")
    choices = tuple(_choice(word, text) for word in match[3].split(",")) if match[3] != "-" else ()
    components = [component for component, _ in choices]
    if components != sorted(set(components)):
        raise IdError(f"components must be named once and in order, found {shown(match[3])} in {shown(text)}")
    return match[1], _number(match[2], text), choices


def _choice(word: str, text: str) -> tuple[int, int]:
    match = _CHOICE.fullmatch(word)
    if match is None:
        raise IdError(f"expected component.version with a version of at least 1, found {shown(word)} in {shown(text)}")
    return _number(match[1], text), _number(match[2], text)


def _number(digits: str, text: str) -> int:
    if len(digits) > len(str(_NUMBER_MAX)) or int(digits) > _NUMBER_MAX:
        raise IdError(f"expected numbers up to {_NUMBER_MAX}, found {shown(digits)} in {shown(text)}")
    return int(digits)
