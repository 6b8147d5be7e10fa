"""Expresses a whole outcome as shell commands, for findings that only say that a reference differs.

No rule says which part of the tree is wrong, so every name is compared with exactly what was found.
"""

from collections.abc import Iterator

from postcrash.harness.expectations.difference import RUNS_MAX
from postcrash.harness.findings.symptom import shell_tests
from postcrash.model import Entry, History, Observation, Tree
from postcrash.model.observation import error_name
from postcrash.model.tree import MADE_BY_MKFS, ROOT_PATH, walk_order
from postcrash.reports.explanation.comparison import compare
from postcrash.reports.script.shell_operations import NoCommandError, quoted
from postcrash.reports.script.shell_script import Symptom
from postcrash.store.records import Finding


def outcome_symptom(finding: Finding, history: History, observation: Observation | None) -> Symptom:
    """Returns what a script checks to see the whole outcome that the finding's reference never shows.

    Raises NoCommandError if no script can look for it.
    """
    reference = None if finding.reference_outcome is None else Observation.from_wire(finding.reference_outcome)
    if observation is None or (observation.mount_errno and reference is not None and reference.mount_errno):
        raise NoCommandError(f"a script cannot look for what differs from {finding.reference_name}: there is no tree")
    claims = tuple(_claims(finding.reference_name, observation, reference, history))
    if observation.mount_errno:
        return Symptom("mount", (), claims, finding.is_repaired)
    reference_tree = reference.tree if reference is not None else Tree()
    return Symptom("tree", tuple(_tests(observation.tree, reference_tree, history)), claims, finding.is_repaired)


def _tests(found: Tree, reference: Tree, history: History) -> Iterator[str]:
    trees = (found, reference, *history.trees[len(history.workload.setup) : history.started + 1])
    paths = set().union(*(tree.paths() for tree in trees)) - MADE_BY_MKFS
    for path in sorted(paths, key=walk_order):
        if path != ROOT_PATH:
            yield from shell_tests(path, found, history)
        yield from _fields(path, found, reference)


def _fields(path: str, found: Tree, reference: Tree) -> Iterator[str]:
    """Yields tests of other differences from the reference: mode, link count, and names of the same file."""
    entry, expected = found.get(path), reference.get(path)
    if entry is None or expected is None or entry.error:
        return
    if entry.mode != expected.mode:
        yield f'[ "$(stat -c %a {quoted(path)})" = {entry.mode:o} ]'
    if entry.nlink != expected.nlink:
        yield f'[ "$(stat -c %h {quoted(path)})" = {entry.nlink} ]'
    yield from _same_files(entry, found, set(found.names(entry.inode)) ^ set(reference.names(expected.inode)))


def _same_files(entry: Entry, found: Tree, differing: set[str]) -> Iterator[str]:
    for other in sorted(differing & set(found.paths())):
        is_same = found[other].inode == entry.inode
        yield f"[ {'' if is_same else '! '}{quoted(entry.path)} -ef {quoted(other)} ]"


def _claims(name: str, found: Observation, reference: Observation | None, history: History) -> Iterator[str]:
    """Yields what the reference never shows, and the nearest outcome that it shows."""
    runs = f"{RUNS_MAX} runs on a disk that completes writes at once, and as many on one that holds them back"
    yield f"{name} never showed this after a crash at this instant, in {runs}"
    if found.mount_errno:
        yield f"found: mount failed with {error_name(found.mount_errno)}"
        return
    if reference is not None and reference.mount_errno:
        yield f"on {name} instead: mount failed with {error_name(reference.mount_errno)}"
    paths, _ = compare(history, found.tree, reference.tree if reference is not None and reference.tree else None)
    for path in paths:
        if path.path != ROOT_PATH or path.differs:
            yield f"{path.path} found: {'; '.join(path.found)}"
        if path.differs and path.reference:
            yield f"{path.path} on {name}, in the nearest that it showed: {'; '.join(path.reference)}"
