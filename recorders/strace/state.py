"""What is known at one line of a trace: processes, their descriptors, and the workload so far."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from postcrash.model import FORMS, WorkloadError
from postcrash.model.operation import HANDLE
from postcrash.model.quoting import quote
from postcrash.model.simulate import FILE_BYTES_MAX
from postcrash.model.workload import LINES_MAX, TAGS_MAX, Assembler
from postcrash.recorders.strace.arguments import descriptor, flags, path
from postcrash.recorders.strace.folder import NameTree, NotMappedError, PathPlace, TreeNode
from postcrash.recorders.strace.reader import TraceLine
from postcrash.recorders.system_calls import SYSTEM_CALLS, SystemCall

DESCRIPTORS_MAX = 4096
MAPPINGS_MAX = 256
_SETUP_LINES_MAX = LINES_MAX - 100
"""The limit leaves room for the comments above a workload."""
_NUMBERS = re.compile(r"(?:^|, )([0-9]{1,9})(?=[<,\s]|$)")
_HEAD_CHARACTERS = 40_000
"""Enough for a call's descriptors, which come first, each with a path of 4096 characters in hexadecimal."""


@dataclass(frozen=True, slots=True)
class CallSource:
    """Where an operation comes from: line (from 1) and name of the call, and the bytes that it wrote, if known."""

    line: int
    call: str
    payload: bytes | None = None


@dataclass(frozen=True, slots=True)
class NotMapped:
    """An effect of a call that is not in the workload: the line (from 1), the name of the call, and the reason."""

    line: int
    call: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.call}: {self.reason}"


@dataclass(eq=False, slots=True)
class Description:
    """An open file description of a file in the folder. Duplicated and inherited descriptors share it."""

    node: TreeNode
    flags: frozenset[str]
    position: int = 0


@dataclass(frozen=True, slots=True)
class DescriptorSlot:
    """A descriptor's entry in the table of a process."""

    description: Description
    close_on_exec: bool


@dataclass(frozen=True, slots=True)
class Mapping:
    """A shared mapping: the file, its first mapped byte, the first byte of memory, and the number of bytes."""

    description: Description
    offset: int
    address: int
    length: int


@dataclass(eq=False, slots=True)
class Process:
    """A thread, with what it may share with others: its descriptors, working directory ("" if not known), mappings."""

    slots: dict[int, DescriptorSlot] = field(default_factory=dict)
    directory: list[str] = field(default_factory=lambda: [""])
    mappings: dict[int, Mapping] = field(default_factory=dict)
    entered: dict[int, Description | None] | None = None
    """The descriptors in the arguments of the call that is under way, as they were when the call was entered."""

    def child(self, shared: frozenset[str]) -> "Process":
        """A new thread or process; `shared` has the names of clone's flags."""
        return Process(
            self.slots if "CLONE_FILES" in shared else dict(self.slots),
            self.directory if "CLONE_FS" in shared else list(self.directory),
            self.mappings if "CLONE_VM" in shared else dict(self.mappings),
        )

    def enter(self, call: TraceLine) -> None:
        """Note which files a call's descriptors refer to. Other threads may close them before the call returns."""
        numbers = map(int, _NUMBERS.findall(call.arguments[:_HEAD_CHARACTERS]))
        self.entered = {number: self.described(number) for number in numbers}

    def has_open(self, node: TreeNode) -> bool:
        """Whether a descriptor, a mapping or the call that is under way refers to the file."""
        known = [slot.description for slot in self.slots.values()]
        known += [mapping.description for mapping in self.mappings.values()]
        known += filter(None, (self.entered or {}).values())
        return any(description.node is node for description in known)

    def described(self, number: int) -> Description | None:
        """What a descriptor refers to now."""
        slot = self.slots.get(number)
        return slot.description if slot else None

    def open(self, number: int, description: Description | None, *, close_on_exec: bool) -> None:
        """Put a descriptor into the table. None stands for a file outside of the folder."""
        self.slots.pop(number, None)
        if description is None:
            return
        if len(self.slots) == DESCRIPTORS_MAX:
            raise NotMappedError(f"more than {DESCRIPTORS_MAX} open descriptors")
        self.slots[number] = DescriptorSlot(description, close_on_exec)


@dataclass(eq=False, slots=True)
class ImportState:
    """The folder's tree, the running threads, the files held by handle, and the workload so far."""

    folder: NameTree
    threads: dict[int, Process] = field(default_factory=dict)
    held: dict[str, TreeNode] = field(default_factory=dict)
    setup: list[str] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    sources: list[CallSource] = field(default_factory=list)
    not_mapped: list[NotMapped] = field(default_factory=list)
    recording: bool = False
    _tags: int = 0

    def emit(self, source: CallSource, word: str, *arguments: str | int) -> None:
        """Add an operation. Raises `NotMappedError` if a workload cannot hold it."""
        line = " ".join([word, *(quote(str(argument)) for argument in arguments)])
        writes = FORMS[word].data is not None
        if writes and self._tags == TAGS_MAX:
            raise NotMappedError(f"a workload has at most {TAGS_MAX} operations that write bytes, and is full")
        if len(self.setup) + len(self.ops) == _SETUP_LINES_MAX:
            raise NotMappedError(f"a workload has at most {LINES_MAX} lines, and is full")
        try:
            Assembler("").add_line(line)
        except WorkloadError as error:
            raise NotMappedError(f"the workload needs {error.expected}, found {error.found}") from None
        self._tags += writes
        if self.recording:
            self.ops.append(line)
            self.sources.append(source)
        else:
            self.setup.append(line)

    def is_open(self, node: TreeNode) -> bool:
        """Whether any thread has the file open."""
        return any(process.has_open(node) for process in self.threads.values())

    def hold(self, source: CallSource, node: TreeNode) -> None:
        """Hold the file by a handle if it is open: its last name is about to go. Closing it frees the handle."""
        path = self.folder.path_of(node)
        if path is None or len(node.names) > 1 or node.type != "file" or not self.is_open(node):
            return
        if HANDLE + path not in self.held:
            self.emit(source, "open", path)
            node.handle = HANDLE + path
            self.held[node.handle] = node

    def release(self, source: CallSource) -> None:
        """Close the handles of files that no thread has open any more. Raises `NotMappedError`."""
        for handle, node in list(self.held.items()):
            if not self.is_open(node):
                del self.held[handle]
                node.handle = ""
                self.emit(source, "close", handle)

    def leave_out(self, line: int, call: str, reason: str) -> None:
        """Report what is not mapped."""
        self.not_mapped.append(NotMapped(line, call, reason))


@dataclass(eq=False, slots=True)
class Context:
    """One call that has returned, with everything that its meaning depends on."""

    run: ImportState
    call: TraceLine
    process: Process
    arguments: list[str]

    @property
    def result(self) -> int:
        """What the call returned. The call has not failed."""
        assert self.call.result is not None
        return self.call.result

    def emit(self, word: str, *arguments: str | int, payload: bytes | None = None) -> None:
        """Add an operation. Raises `NotMappedError`."""
        self.run.emit(CallSource(self.call.line, self.call.name, payload), word, *arguments)

    def hold(self, node: TreeNode) -> None:
        """Hold the file, which is about to lose a name, possibly its last. Raises `NotMappedError`."""
        self.run.hold(CallSource(self.call.line, self.call.name), node)

    def leave_out(self, reason: str) -> None:
        """Report a part of the call that is not mapped."""
        self.run.leave_out(self.call.line, self.call.name, reason)

    def argument(self, index: int) -> str:
        """An argument, or "" if it is missing."""
        return self.arguments[index] if index < len(self.arguments) else ""

    def description(self, index: int) -> Description | None:
        """The open file that a descriptor argument names. None if it lies outside. Raises `NotMappedError`."""
        named, found = descriptor(self.argument(index)), self.known(index)
        if named is not None and named.number is not None and named.path:
            inside = self.run.folder.contains(named.path)
            if inside and found is None:
                raise NotMappedError(f"descriptor {named.number} was not seen being opened, or its opening not mapped")
            if found is not None and not inside:
                raise NotMappedError(f"descriptor {named.number} is no file that was opened in the folder")
        return found

    def known(self, index: int) -> Description | None:
        """The open file that a descriptor argument names. None if it is outside of the folder or not known."""
        named = descriptor(self.argument(index))
        if named is None or named.number is None:
            return None
        entered = self.process.entered or {}
        return entered[named.number] if named.number in entered else self.process.described(named.number)

    def path_of(self, node: TreeNode) -> str:
        """A path of an inode, or its handle. Raises `NotMappedError` if it has none."""
        path = self.run.folder.path_of(node) or node.handle
        if not path:
            raise NotMappedError("the file has no name (any more)")
        return path

    @property
    def call_form(self) -> SystemCall:
        """The call's entry in the table of system calls."""
        return SYSTEM_CALLS[self.call.name]

    @property
    def path_flags(self) -> frozenset[str]:
        """The flags behind the call's last path."""
        return flags(self.argument(self.call_form.paths[-1][1] + 1))

    def places(self, *, follow: bool = False) -> list[PathPlace | None]:
        """Where the call's path arguments lead. Values and errors as of `place`."""
        return [self.place(*argument, follow=follow) for argument in self.call_form.paths]

    def place(self, directory: int | None, index: int, *, follow: bool = False) -> PathPlace | None:
        """Where a path argument leads. None if that is outside of the folder. Raises `NotMappedError`.

        A relative path starts from the descriptor argument `directory`, or from the working directory (None).
        """
        named = path(self.argument(index))
        base = "/" if named.startswith("/") else self._base(directory)
        return self.run.folder.find(base, named, follow=follow)

    def _base(self, directory: int | None) -> str:
        named = None if directory is None else descriptor(self.argument(directory))
        if named is not None and named.number is not None:
            if named.path:
                return named.path
            opened = self.description(directory or 0)
            if opened is not None:
                return self.run.folder.absolute(self.path_of(opened.node))
        elif named is not None and named.path:
            self.process.directory[0] = named.path
        if not self.process.directory[0]:
            raise NotMappedError("its path is relative to a directory that is not known; run strace with -y")
        return self.process.directory[0]


def ends_within(end: int) -> int:
    """`end` of a range of bytes. Raises `NotMappedError` if no file of a workload gets so large."""
    if end > FILE_BYTES_MAX:
        raise NotMappedError(f"it reaches to byte {end}, and files of workloads have at most {FILE_BYTES_MAX}")
    return end


Handler = Callable[[Context], None]
