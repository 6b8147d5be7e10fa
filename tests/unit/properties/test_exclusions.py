"""What P1 to P5 do not judge. Each exclusion has a crash that would be a false alarm without it.

The tables of the single properties have more such cases, and similar cases that are violations.
"""

from collections.abc import Callable

import pytest

from postcrash.model import Verdict
from postcrash.model.judge import Opinion
from postcrash.properties import HOTDEP13, Property, property_named

TWO = "creat a; creat b"
OLD = "creat a; append a 100"

# property, how its exclusion begins, set-up, operations (all returned), tree after the crash
ROWS = [
    ("P1", "A directory operation that is half done", "creat t", "rename t u; creat a", "t u"),
    ("P1", "An effect that no longer shows", "", "creat a; unlink a; creat b", "b"),
    ("P1", "Contents, sizes", "creat s", "creat a; append a 10; creat b", "s a b"),
    ("P1", "What is made in a directory after its move", "mkdir D", "rename D E; creat E/a; fsync E/a", "D/ D/a"),
    ("P2", "A file that is missing", OLD, "append a 10", "a=w0:50"),
    ("P2", "A file that a recorded operation also", OLD, "append a 10; truncate a 200", "a=w0:100+w1:10+zero:90"),
    ("P2", "A file that a recorded operation also", OLD, "append a 10; write a 50 100", "a=w0:50+w2:100"),
    ("P2", "A file that a recorded operation also", OLD, "append a 10; fallocate a none 0 200", "a=w0:100+zero:100"),
    ("P2", "A name that is another file's", OLD, "creat b; append b 10; rename b a", "a=w0:100"),
    ("P2", "Appends through a mapping", OLD, "mmapwrite a 100 10", "a=w0:100+zero:10"),
    ("P2-null", "y = x is allowed", OLD, "append a 10", "a=w0:100+w1:10"),
    ("P3", "Two appends to the same file", "creat a", "append a 10; append a 10", "a=zero:10+w1:10"),
    ("P3", "A second append of which only a later part", TWO, "append a 10; append b 8192", "a b=zero:4096+w1:4096"),
    ("P3", "A file that a recorded operation also", TWO, "append a 10; append b 10; unlink a", "b=w1:10"),
    ("P3", "A file that a recorded operation also", TWO, "append a 10; append b 10; rename a c", "b=w1:10 c=w0:10"),
    ("P3", "A file that a recorded operation also", TWO, "append a 10; append b 10; truncate a 0", "a b=w1:10"),
    ("P3", "Overwrites", f"{OLD}; creat b", "write a 0 100; append b 10", "a=w0:100 b=w2:10"),
    ("P4", "Names other than", "mkdir D", "creat a; link a D/l; fsync a", "a D/"),
    ("P4", "The names of directories on the way", "mkdir D", "rename D E; creat E/a; fsync E/a", "D/ D/a"),
    ("P4", "A name that an operation took away", "", "creat a; fsync a; unlink a", ""),
    ("P4", "O_SYNC writes and sync()", "", "creat a; write-osync a 0 10", ""),
    ("P4", "msync() where the file has no byte", "", "creat a; msync a", ""),
    ("P4", "The file's contents", "", "creat a; append a 10; fsync a", "a"),
    ("P5", "A rename to a name that did not exist", "", "creat b; append b 10; rename b a", "a"),
    ("P5", "An A that a recorded operation changes", OLD, "creat b; append b 10; rename b a; unlink a", ""),
    ("P5", "Bytes behind those", OLD, "creat b; append b 10; rename b a", "a=w1:10+zero:1"),
]


@pytest.mark.parametrize(("name", "exclusion", "setup", "operations", "tree"), ROWS)
def test_what_is_excluded_is_no_alarm(
    judge: Callable[[Property, str, str, str], Opinion],
    name: str,
    exclusion: str,
    setup: str,
    operations: str,
    tree: str,
) -> None:
    checked = property_named(name)
    assert sum(text.startswith(exclusion) for text in checked.exclusions) == 1
    assert judge(checked, setup, operations, tree).verdict is Verdict.HOLDS


@pytest.mark.parametrize("checked", HOTDEP13, ids=lambda checked: checked.name)
def test_every_exclusion_has_its_case(checked: Property) -> None:
    shared = {"P2-null": ("P2",)}.get(checked.name, ())
    known = [begun for name, begun, *_ in ROWS if name in (checked.name, *shared)]
    assert [text for text in checked.exclusions if not any(map(text.startswith, known))] == []
