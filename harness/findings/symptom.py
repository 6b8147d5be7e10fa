"""Expresses the part of a recovered tree to which a judge objects as shell commands.

Names are left out if the judge objects regardless of the instant from which their entries are taken.
"""

import shlex
from collections.abc import Iterator

from postcrash.checkers import Checker
from postcrash.checkers.checker import TREE_IN_SHELL, InShell, NotInShell
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.lost_guests import LOST_GUEST_JUDGE
from postcrash.model import Entry, History, Observation, Tree, Verdict
from postcrash.model.judge import Judge
from postcrash.model.tree import MADE_BY_MKFS, ROOT_PATH
from postcrash.reports.explanation.comparison import entry_lines
from postcrash.reports.script.shell_operations import NoCommandError, byte_of, quoted
from postcrash.reports.script.shell_script import Symptom

SPECIAL = {"fifo": "fifo", "socket": "socket", "char": "character special file", "block": "block special file"}
"""The names of special files in stat(1)."""


def symptom(checker: str, history: History, observation: Observation | None, *, repaired: bool = False) -> Symptom:
    """Returns what a script checks to see the finding of `checker` in `observation`. NoCommandError if it cannot.

    With `repaired`, the target's repair is run before the mount.
    """
    shown = _in_shell(checker)
    if isinstance(shown, NotInShell) or observation is None:
        reason = shown.reason if isinstance(shown, NotInShell) else "no tree"
        raise NoCommandError(f"a script cannot look for what {checker} found: {reason}")
    if shown.kind != "tree":
        in_words = (f"expected: {shown.expected}", f"found: {shown.found}")
        return Symptom(shown.kind, shown.tests, in_words, repaired)
    judge, found = _judge(checker), observation.tree
    paths = _needed(judge, history, found)
    tests = tuple(test for path in paths for test in shell_tests(path, found, history))
    claims = tuple(line for path in paths for line in _claim(path, found, history))
    return Symptom("tree", tests, claims, repaired)


def _in_shell(checker: str) -> InShell | NotInShell:
    """Returns how a script can check for the judge's objection. Properties are about trees."""
    if checker == LOST_GUEST_JUDGE:
        return NotInShell("recovery kills or hangs the kernel")
    judge = _judge(checker)
    return judge.in_shell if isinstance(judge, Checker) else TREE_IN_SHELL


def objects(checker: str, history: History, observation: Observation) -> bool:
    """Whether the judge objects to the observation at `history`."""
    return _judge(checker).check(history, observation).verdict is Verdict.VIOLATED


def _judge(checker: str) -> Judge:
    try:
        return judges_named([checker])[0]
    except LookupError:
        raise NoCommandError(f"a script cannot look for what {checker} found: it compares two recoveries") from None


def _instants(history: History) -> tuple[Tree, ...]:
    return history.trees[len(history.workload.setup) : history.started + 1]


def _needed(judge: Judge, history: History, found: Tree) -> list[str]:
    """Returns the names on which the judge's opinion depends."""
    paths = frozenset(found.paths()).union(*(tree.paths() for tree in _instants(history)))
    needed = sorted(paths - MADE_BY_MKFS - {ROOT_PATH})
    for path in list(needed):
        fewer = [other for other in needed if other != path]
        trees = [_with(tree, found, fewer) for tree in _instants(history)]
        if all(judge.check(history, Observation(0, tree)).verdict is Verdict.VIOLATED for tree in trees):
            needed = fewer
    return needed


def _with(tree: Tree, found: Tree, paths: list[str]) -> Tree:
    """Returns `tree` with the found entries at `paths` and their parent directories."""
    changes: dict[str, Entry | None] = {}
    for path in paths:
        parts = path.split("/")
        changes |= {above: found.get(above) for above in ("/".join(parts[:n]) for n in range(1, len(parts) + 1))}
    return tree.changed(changes)


def shell_tests(path: str, found: Tree, history: History) -> Iterator[str]:
    """Yields shell commands that all succeed in a directory with the same entry at `path` as `found`."""
    entry, name = found.get(path), quoted(path)
    if entry is None:
        yield f"[ ! -e {name} ] && [ ! -L {name} ]"
        return
    if entry.error:
        yield f"! {'ls' if entry.type == 'dir' else 'cat'} {name} >/dev/null 2>&1"
        return
    same = [entry, *(tree[path] for tree in _instants(history) if path in tree)]
    match entry.type:
        case "file":
            runs = [f"{run.end - run.start}:{byte_of(run.source):03o}" for run in entry.segments]
            yield f"[ -f {name} ]"
            yield " ".join(["holds", name, *runs])
        case "dir":
            yield f"[ -d {name} ]"
        case "symlink":
            yield f'[ "$(readlink {name})" = {shlex.quote(entry.target)} ]'
        case "char" | "block":
            number = ":".join(f"{int(part):x}" for part in entry.target.split(":"))
            yield f'[ "$(stat -c %F:%t:%T {name})" = {shlex.quote(f"{SPECIAL[entry.type]}:{number}")} ]'
        case "fifo" | "socket":
            yield f'[ "$(stat -c %F {name})" = {SPECIAL[entry.type]} ]'
        case _:
            yield f"[ -e {name} ] && [ ! -f {name} ] && [ ! -d {name} ]"
    if entry.type == "file" and any(other.nlink != 1 for other in same):
        yield f'[ "$(stat -c %h {name})" = {entry.nlink} ]'
    for attribute in sorted({attribute for other in same for attribute, _ in other.xattrs}):
        yield _attribute(name, attribute, dict(entry.xattrs).get(attribute))


def _attribute(name: str, attribute: str, value: str | None) -> str:
    get = f"getfattr -e hex -n {shlex.quote(attribute)} {name} 2>/dev/null"
    if value is None:
        return f"! {get} >/dev/null"
    return f"{get} | grep -qxF {shlex.quote(f'{attribute}=0x{value}')}"


def _claim(path: str, found: Tree, history: History) -> Iterator[str]:
    def description(tree: Tree) -> str:
        return "; ".join(entry_lines(path, tree, history.workload))

    returned, started = description(history.trees[history.returned]), description(history.trees[history.started])
    yield f"{path} after the operations: {returned}" + (f"; or: {started}" if started != returned else "")
    yield f"{path} found: {description(found)}"
