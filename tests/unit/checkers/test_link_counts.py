"""The link-counts checker: files by their names, directories by their subdirectories."""

import pytest

from postcrash.checkers.link_counts import LinkCounts
from postcrash.model import Entry, History, Observation, Tree, parse_workload
from postcrash.model.judge import CannotTellError
from postcrash.model.tree import EntryType

HISTORY = History(parse_workload("creat a", "litmus"), 1, 1)

# entries as path:inode:links (a directory ends in /), what is found
ROWS = [
    ("./:1:2 a:2:1", ""),
    ("./:1:2 a:2:2", "a has 2 links, but 1 name"),
    ("./:1:2 a:2:2 b:2:2", ""),
    ("./:1:2 a:2:1 b:2:1", "a has 1 links, but 2 names"),
    ("./:1:2 a:2:0", "a has 0 links, but 1 name"),
    ("./:1:3 D/:2:2", ""),
    ("./:1:4 D/:2:2", ""),  # lost+found is not in the tree
    ("./:1:2 D/:2:2", ". has 2 links, but 1 subdirectories"),
    ("./:1:3 D/:2:3", "D has 3 links, but 0 subdirectories"),
    ("./:1:3 D/:2:3 D/E/:3:2", ""),
    ("./:1:1 D/:2:1 D/E/:3:1", ""),  # btrfs
    ("./:1:1 D/:2:0", "D has 0 links, but 0 subdirectories"),
    ("./:1:4 D/:2:1 E/:3:1 E/F/:4:2", "D has 1 links, but 0 subdirectories"),
]


@pytest.mark.parametrize(("entries", "message"), ROWS)
def test_litmus(entries: str, message: str) -> None:
    tree = []
    for text in entries.split():
        path, inode, links = text.split(":")
        kind: EntryType = "dir" if path.endswith("/") else "file"
        tree.append(Entry(path.rstrip("/"), kind, inode=int(inode), nlink=int(links)))
    finding = LinkCounts().examine(HISTORY, Observation(0, Tree(tree)))
    assert finding.message == message


def test_a_tree_that_was_read_in_part_is_not_judged() -> None:
    tree = Tree([Entry(".", "dir", nlink=2), Entry("a", "file", inode=2, nlink=2), Entry("b", "file", error=5)])
    with pytest.raises(CannotTellError, match=r"b cannot be read \(errno 5\)"):
        LinkCounts().examine(HISTORY, Observation(0, tree))
