"""The grammars.

`ace` has the bounds of ACE (Mohan et al., *Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing*, OSDI
2018): 328 workloads of one operation, 241,720 of two and 7,478,858 of three. `full` goes further.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from postcrash.workloads.grammar import Call, Grammar, Point, Template

_FIRST = ("foo", "A/foo")
_SECOND = ("bar", "A/bar")
_FILES = (*_FIRST, *_SECOND)
_MODES = ("zero-range", "zero-range-keep-size", "punch-hole", "keep-size", "none")
_RANGES = ("append", "overlap-unaligned", "overlap-extending")
_ALIGNED = ("append", "overlap")
_HELD = ("append", "overlap-unaligned")

_ACE_TEMPLATES = (
    Template("creat", (_FIRST,)),
    Template("mkdir", (("A",),)),
    Template("falloc", (_FIRST,), _MODES, _RANGES),
    Template("write", (_FIRST,), ranges=_RANGES),
    Template("dwrite", (_FIRST,), ranges=_ALIGNED),
    Template("mmapwrite", (_FIRST,), ranges=_ALIGNED),
    Template("link", (_FILES, _SECOND)),
    Template("unlink", (_FILES,)),
    Template("remove", (_FILES,)),
    Template("rename", (_FILES, _SECOND)),
    Template("rename", (("A", "B"), ("B",))),
    Template("setxattr", (_FIRST,)),
    Template("removexattr", (_FIRST,)),
    Template("truncate", (_FIRST,), ranges=("aligned", "unaligned")),
)


def _ace_reuse(calls: Sequence[Call]) -> bool:
    """Whether three calls belong together, by ACE's rule as its program applies it.

    Each call after the first must share an argument with those before it. Arguments of a call that has only one are
    compared letter by letter, and a call whose first letter or argument is A or B, or that follows a rename of A to B
    alone, always belongs. Three writes are left out.
    """
    if len(calls) < 3:
        return True
    if all(call.word == "write" for call in calls):
        return False
    so_far: set[str] = set()
    for number, call in enumerate(calls):
        arguments = (*call.paths, *filter(None, (call.mode, call.range)))
        compared = set(arguments[0]) if len(arguments) == 1 else set(arguments)
        first = arguments[0][0] if len(arguments) == 1 else arguments[0]
        if number and not compared & so_far and first not in ("A", "B") and so_far != {"A", "B"}:
            return False
        so_far |= compared
    return True


def _shares_a_path(calls: Sequence[Call]) -> bool:
    """Whether each call names a path, or one in a folder or the folder of a path, that those before it name."""
    seen: set[str] = set()
    for call in calls:
        near = {part for path in call.paths for part in (path, path.rpartition("/")[0]) if part}
        if seen and not near & seen:
            return False
        seen |= near
    return True


_ACE = Grammar(
    name="ace",
    files=_FILES,
    folders=("A", "B"),
    templates=_ACE_TEMPLATES,
    points=(Point("fsync", "related"), Point("sync", "everything"), Point("", "nothing", last=False)),
    durable=("mmapwrite",),
    reuse=_ace_reuse,
    checkpoint=False,
)

_BOTH = (*_FILES, "B/foo", "B/bar")
_FULL = Grammar(
    name="full",
    files=_BOTH,
    folders=("A", "B"),
    templates=(
        *_ACE_TEMPLATES,
        Template("link", (_FIRST, ("B/foo",))),
        Template("rename", (_FILES, ("B/foo",))),
        Template("exchange", (_FIRST, (*_SECOND, "B/bar"))),
        Template("exchange", (("A",), ("B",))),
        Template("symlink", (_FIRST, _SECOND)),
        Template("mknod", (_FIRST,), ("fifo",)),
        Template("falloc", (_FIRST,), ("collapse-range", "insert-range"), ("overlap",)),
        Template("reflink", (_FIRST, _SECOND)),
        Template("rmdir", (("A",),)),
        Template("write", (_FIRST,), ranges=("hole",)),
        Template("osync", (_FIRST,), ranges=_RANGES),
        Template("store", (_FIRST,), ranges=_RANGES),
        Template("extend", (_FIRST,)),
        Template("held-unlink", (_FIRST,), ranges=_HELD),
        Template("held-creat", (_FIRST,), ranges=_HELD),
        Template("held-rename", (_FIRST, (*_SECOND, "B/foo")), ranges=_HELD),
        Template("replace", (_FIRST, _SECOND)),
        Template("replace", (("A",), ("B",))),
        Template("rename-symlink", (("foo",), ("bar",))),
        Template("rename-symlink", (("A/foo",), ("A/bar",))),
        Template("reuse-creat", (_FIRST,)),
        Template("reuse-mkdir", (_FIRST,)),
        Template("reuse-link", (("foo",), ("bar",))),
        Template("reuse-link", (("A/foo",), ("A/bar",))),
        Template("burst", (("A",),)),
        Template("burst-fsync", (("A",),)),
        Template("crowd", (("A",),)),
        Template("write", (_FIRST,), ranges=("sector", "block", "inside")),
        Template("odsync", (_FIRST,), ranges=_RANGES),
        Template("direct", (_FIRST,), ranges=_ALIGNED),
        Template("cut-and-append", (_FIRST,)),
        Template("extend-unaligned", (_FIRST,)),
        Template("rename-special", (("foo",), ("bar",)), ("fifo", "char")),
        Template("rename-special", (("A/foo",), ("A/bar",)), ("fifo", "char")),
        Template("append-and-extend", (_FIRST,)),
        Template("append-and-cut", (_FIRST,)),
        Template("falloc", (_FIRST,), ("punch-hole", "zero-range"), ("last-block",)),
    ),
    points=(
        Point("fsync", "related"),
        Point("fdatasync", "used", files=True),
        Point("msync", "used", files=True),
        Point("sync", "everything"),
        Point("syncfs", "everything"),
        Point("writeback", "used", files=True, last=False),
        Point("commit", "everything", last=False),
        Point("checkpoint", "everything", last=False),
        Point("", "nothing", last=False),
    ),
    durable=("mmapwrite", "crowd"),
    reuse=_shares_a_path,
    setups=("new", "synced", "logged"),
)

GRAMMARS: Mapping[str, Grammar] = MappingProxyType({grammar.name: grammar for grammar in (_ACE, _FULL)})
"""Every grammar by its name."""
