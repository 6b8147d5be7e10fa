"""P4, safe new file flush."""

from collections.abc import Iterator

from postcrash.model import Entry, History, Observation, Tree, Workload
from postcrash.model.judge import UNTESTED, Opinion, holds, violated
from postcrash.properties.family import family
from postcrash.properties.property import Property
from postcrash.properties.wording import operation_at

_FLUSHES = ("fsync", "fdatasync", "msync")


class SafeNewFileFlush(Property):
    """P4 of HotDep'13."""

    name = "P4"
    title = "safe new file flush"
    statement = (
        "If a file has been created and fsync(), fdatasync() or msync() of it has returned, "
        "its directory entry is there after a crash."
    )
    source = "HotDep'13, section 2 (P4)"
    exclusions = (
        "Names other than the one the file was created under (links, the new name of a rename).",
        "The names of directories on the way: the entry counts where its directory is found under a former name.",
        "A name that an operation took away, or began to take away, after the flush.",
        "O_SYNC writes and sync(), which the paper does not list.",
        "msync() where the file has no byte: there is nothing to map, so no call is made.",
        "The file's contents: the durability checker has them.",
    )

    def workloads(self) -> tuple[Workload, ...]:
        """New files of several sizes, flushed in each way, in old, new and renamed directories."""
        return family(*_ROWS)

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if the flush of a new file had returned."""
        tree = observation.tree
        relevant = False
        for flush, path in _flushed_names(history):
            relevant = True
            entry = _found(history, flush, path, tree)
            if entry is None or entry.type != "file":
                found = "is missing" if entry is None else f"is a {entry.type}"
                message = f"{operation_at(history.workload, flush)} had returned, but {path} {found}"
                return violated(message)
        return holds("the flushed files have their names") if relevant else UNTESTED


def _flushed_names(history: History) -> Iterator[tuple[int, str]]:
    """Each returned flush of a file that the recorded operations made, with the file's first name."""
    created = dict(_created_names(history))
    for index in range(len(history.workload.setup), history.returned):
        operation = history.workload.operations[index]
        if operation.word not in _FLUSHES:
            continue
        entry = history.trees[index][operation.path]
        if operation.word == "msync" and entry.size <= (operation.offset or 0):
            continue
        inode = entry.inode
        path = created.get(inode)
        if path is not None and all(_names(tree, path, inode) for tree in history.possible_trees(index)):
            yield index, path


def _found(history: History, flush: int, path: str, tree: Tree) -> Entry | None:
    """The file's entry, under any name that its directory had: P4 promises nothing about the directory's name."""
    parent, _, name = path.rpartition("/")
    if not parent:
        return tree.get(path)
    directory = history.trees[flush][parent].inode
    places = {place for known in history.possible_trees(0) for place in known.names(directory)}
    return next((tree[f"{place}/{name}"] for place in sorted(places) if f"{place}/{name}" in tree), None)


def _created_names(history: History) -> Iterator[tuple[int, str]]:
    for index in range(len(history.workload.setup), history.returned):
        operation = history.workload.operations[index]
        if operation.word == "creat":
            yield history.trees[index + 1][operation.path].inode, operation.path


def _names(tree: Tree, path: str, inode: int) -> bool:
    entry = tree.get(path)
    return entry is not None and entry.inode == inode


_ROWS = (
    ("p4-0-fsync", "", "creat a; fsync a"),
    ("p4-0-fdatasync", "", "creat a; fdatasync a"),
    ("p4-100-fdatasync", "", "creat a; append a 100; fdatasync a"),
    ("p4-4096-fsync", "", "creat a; append a 4096; fsync a"),
    ("p4-12288-fdatasync", "", "creat a; append a 12288; fdatasync a"),
    ("p4-4096-msync", "", "creat a; mmapwrite a 0 4096; msync a"),
    ("p4-old-dir-fsync", "mkdir D", "creat D/a; append D/a 4096; fsync D/a"),
    ("p4-new-dir-fsync", "", "mkdir D; creat D/a; append D/a 100; fsync D/a"),
    ("p4-renamed-dir-fsync", "mkdir D", "rename D E; creat E/a; fsync E/a"),
    ("p4-unlink-rename-before-fdatasync", "creat s; creat t", "unlink s; rename t u; creat a; fdatasync a"),
    ("p4-linked-fsync", "mkdir D", "creat a; link a D/l; fsync a"),
)
