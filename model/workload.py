"""Workloads, and the parser of the `.ops` language (docs/workloads.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from os import PathLike
from pathlib import Path

from postcrash.model.argument import ArgumentError, read_argument
from postcrash.model.operation import ENDS, FORMS, PROGRAM_FORMS, PROGRAMS, SAYS, Form, Operation, Persistence
from postcrash.model.quoting import LineError, Token, shown_word, split_line

SEPARATOR = "---"
LINES_MAX = 10_000
LINE_CHARACTERS_MAX = 8192
TAGS_MAX = 255
"""Tags are 0 to 254, because a byte that a write leaves behind is never zero and so has 255 values."""
FILE_BYTES_MAX = 16 * 1024 * 1024
TAIL = ("commit", "sync", "checkpoint")
"""What the kernel does later by itself: commit, write back, and move metadata from the log to its own place."""


class WorkloadError(ValueError):
    """A workload has a mistake. The text is `FILE:LINE:COLUMN: expected X, found 'Y'`, with line and column from 1."""

    def __init__(self, file: str, line: int, column: int, expected: str, found: str) -> None:
        super().__init__(f"{file}:{line}:{column}: expected {expected}, found {found}")
        self.file = file
        self.line = line
        self.column = column
        self.expected = expected
        self.found = found


@dataclass(frozen=True)
class Workload:
    """Operations on one file system: `setup` is durable before recording starts, `ops` are recorded."""

    name: str
    setup: tuple[Operation, ...]
    ops: tuple[Operation, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash is kept because histories, which are looked up all the time, hash their workload."""
        return hash((self.name, self.setup, self.ops))

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All operations, set-up first. Histories and simulated trees count these."""
        return self.setup + self.ops

    def to_wire(self) -> dict[str, list[dict[str, str | int]]]:
        """The object that the agent gets; docs/formats.md, "Workload, as sent to the agent"."""
        return {
            "setup": [operation.to_wire() for operation in self.setup],
            "ops": [operation.to_wire() for operation in self.ops],
        }

    @property
    def runs_programs(self) -> bool:
        """Whether it is known only after a run what its operations are."""
        return any(operation.word in PROGRAMS for operation in self.operations)

    def as_run(self, outputs: Sequence[Sequence[str]]) -> "Workload":
        """The workload with what its programs did when they ran. `outputs` are the lines of each, set-up included."""
        lines = iter(outputs)
        for operation in self.setup:
            if operation.word in PROGRAMS:
                next(lines)
        ops: list[Operation] = []
        for operation in self.ops:
            ops.append(operation)
            if operation.word in PROGRAMS:
                ops += [*(Operation(SAYS, value=line) for line in next(lines)), Operation(ENDS)]
        return replace(self, ops=tuple(ops))

    def to_text(self) -> str:
        """The workload in the `.ops` language; `parse_workload` gives an equal workload back."""
        setup = [*map(str, self.setup), SEPARATOR] if self.setup else []
        return "".join(f"{line}\n" for line in [*setup, *map(str, self.ops)])

    def with_tail(self, *, checkpoint: bool = True) -> "Workload":
        """The same workload ending in `TAIL`, so that the recording holds what the kernel does later by itself.

        What a workload already ends in is not added: only `checkpoint` after an operation that makes everything
        durable, and nothing after `checkpoint`. Without `checkpoint`, metadata stays in the log.
        """
        if self.ends_in_checkpoint:
            return self
        is_durable = bool(self.ops) and self.ops[-1].form.persistence is Persistence.EVERYTHING
        words = TAIL[-1:] if is_durable else TAIL
        return replace(self, ops=(*self.ops, *map(Operation, words if checkpoint else words[:-1])))

    @property
    def ends_in_checkpoint(self) -> bool:
        """Whether its metadata has left the log at the end."""
        return bool(self.ops) and self.ops[-1].word == TAIL[-1]

    def without_tail(self) -> "Workload":
        """The shortest workload from which `with_tail` makes this one: without the operations that it adds."""
        for added in range(len(TAIL), 0, -1):
            shorter = replace(self, ops=self.ops[:-added])
            if shorter.ops and shorter.with_tail(checkpoint=self.ends_in_checkpoint) == self:
                return shorter
        return self


def load_workload(path: str | PathLike[str]) -> Workload:
    """The workload in the file `path`, named after it without `.ops`. Raises `WorkloadError` and `OSError`."""
    file = str(path)
    with Path(path).open("rb") as stream:
        content = stream.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise WorkloadError(file, 1, 1, f"at most {FILE_BYTES_MAX} bytes", "more")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        column = len(before) - before.rfind("\n")
        found = f"byte {content[error.start]:#04x}"
        raise WorkloadError(file, before.count("\n") + 1, column, "UTF-8", found) from None
    return parse_workload(text, Path(path).stem, file)


def parse_workload(text: str, name: str, file: str | None = None) -> Workload:
    """The workload that `text` describes. Errors call it `file` (default: `name`). Raises `WorkloadError`."""
    assembler = Assembler(name if file is None else file)
    for line in text.split("\n"):
        assembler.add_line(line)
    return assembler.workload(name)


class Assembler:
    """Puts a workload together line by line, for the parser and the builder alike."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines = 0
        self._tag = 0
        self._setup: tuple[Operation, ...] | None = None
        self._ops: tuple[Operation, ...] = ()

    def add_line(self, line: str) -> None:
        """Take one more line. If it raises `WorkloadError`, only the line number has changed."""
        self._lines += 1
        try:
            self._add_tokens(_tokens(line, self._lines))
        except LineError as error:
            raise WorkloadError(self._file, self._lines, error.column, error.expected, error.found) from None

    def workload(self, name: str) -> Workload:
        """What has been added so far. Raises `WorkloadError` if there is nothing to record."""
        if not self._ops:
            expected = "at least one operation to record"
            raise WorkloadError(self._file, max(self._lines, 1), 1, expected, "end of file")
        return Workload(name, self._setup or (), self._ops)

    def _add_tokens(self, tokens: list[Token]) -> None:
        if not tokens:
            return
        if tokens[0].text == SEPARATOR and not tokens[0].quoted:
            self._separate(tokens)
            return
        operation = replace(_operation(tokens), line=self._lines)
        if operation.form.data:
            if self._tag == TAGS_MAX:
                raise LineError(tokens[0].column, f"at most {TAGS_MAX} operations that write bytes", "one more")
            operation = replace(operation, tag=self._tag)
            self._tag += 1
        self._ops += (operation,)

    def _separate(self, tokens: list[Token]) -> None:
        if self._setup is not None:
            raise LineError(tokens[0].column, f"only one {SEPARATOR}", shown_word(SEPARATOR))
        _refuse_rest(tokens[1:])
        self._setup, self._ops = self._ops, ()


def _tokens(line: str, number: int) -> list[Token]:
    if number > LINES_MAX and line:
        raise LineError(1, f"at most {LINES_MAX} lines", "one more")
    if len(line) > LINE_CHARACTERS_MAX:
        raise LineError(LINE_CHARACTERS_MAX + 1, f"at most {LINE_CHARACTERS_MAX} characters in a line", "more")
    return split_line(line.removesuffix("\r"))


def _operation(tokens: list[Token]) -> Operation:
    form = _form(tokens[0])
    given = tokens[1 : 1 + len(form.arguments)]
    missing = form.arguments[len(given) :]
    if missing and (not form.optional or len(missing) != form.optional):
        raise LineError(tokens[-1].end, f"{missing[0].shown} ({form.usage})", "end of line")
    _refuse_rest(tokens[1 + len(given) :])
    operation = Operation(form.word)
    for argument, token in zip(form.arguments, given, strict=False):
        try:
            value = read_argument(argument.kind, token.text)
        except ArgumentError as error:
            raise LineError(token.column, f"{argument.shown}: {error}", shown_word(token.text)) from None
        operation = replace(operation, **{argument.field: value})  # type: ignore[arg-type]
    return operation


def _form(token: Token) -> Form:
    form = None if token.quoted else FORMS.get(token.text) or PROGRAM_FORMS.get(token.text)
    if form is not None:
        return form
    close = get_close_matches(token.text, FORMS, n=1)
    hint = f"perhaps {close[0]}" if close else f"one of {', '.join(FORMS)}"
    raise LineError(token.column, f"an operation ({hint})", shown_word(token.text))


def _refuse_rest(tokens: list[Token]) -> None:
    if tokens:
        raise LineError(tokens[0].column, "end of line", shown_word(tokens[0].text))
