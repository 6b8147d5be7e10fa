"""A whole outcome as commands of the shell: what a script looks for if a finding says only that a reference differs.

No rule says which part of the tree is wrong. So every name is looked at, and compared with exactly what was found.
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
    """What a script looks for to see the whole outcome that the finding's reference never shows.

    Raises NoCommandError if no script can look for it.
    """
    reference = None if finding.reference_outcome is None else Observation.from_wire(finding.reference_outcome)
    if observation is None or (observation.mount_errno and reference is not None and reference.mount_errno):
        raise NoCommandError(f"a script cannot look for what differs from {finding.reference_name}: there is no tree")
    claims = tuple(_claims(finding.reference_name, observation, reference, history))
    if observation.mount_errno:
        return Symptom("mount", (), claims, finding.is_repaired)
    theirs = reference.tree if reference is not None else Tree()
    return Symptom("tree", tuple(_tests(observation.tree, theirs, history)), claims, finding.is_repaired)


def _tests(found: Tree, reference: Tree, history: History) -> Iterator[str]:
    trees = (found, reference, *history.trees[len(history.workload.setup) : history.started + 1])
    paths = set().union(*(tree.paths() for tree in trees)) - MADE_BY_MKFS
    for path in sorted(paths, key=walk_order):
        if path != ROOT_PATH:
            yield from shell_tests(path, found, history)
        yield from _fields(path, found, reference)


def _fields(path: str, found: Tree, reference: Tree) -> Iterator[str]:
    """Tests of what else differs from the reference: mode, link count, and which names are of one file."""
    mine, theirs = found.get(path), reference.get(path)
    if mine is None or theirs is None or mine.error:
        return
    if mine.mode != theirs.mode:
        yield f'[ "$(stat -c %a {quoted(path)})" = {mine.mode:o} ]'
    if mine.nlink != theirs.nlink:
        yield f'[ "$(stat -c %h {quoted(path)})" = {mine.nlink} ]'
    yield from _same_files(mine, found, set(found.names(mine.inode)) ^ set(reference.names(theirs.inode)))


def _same_files(mine: Entry, found: Tree, unlike: set[str]) -> Iterator[str]:
    for other in sorted(unlike & set(found.paths())):
        is_same = found[other].inode == mine.inode
        yield f"[ {'' if is_same else '! '}{quoted(mine.path)} -ef {quoted(other)} ]"


def _claims(name: str, found: Observation, reference: Observation | None, history: History) -> Iterator[str]:
    """What the reference never does, and the nearest that it does instead."""
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
