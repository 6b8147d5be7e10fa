"""What kernels are called in the results of one run."""

from pathlib import Path

from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.kernel import Kernel, labels_of


def named(name: str, version: str = "6.1.192") -> Kernel:
    return Kernel(Path(f"/{name}"), version, None, Uml(), name=name)


def test_kernels_that_are_called_alike_are_told_apart_by_their_names() -> None:
    base, patched, other = named("base"), named("patched"), named("other", "7.2.7")
    assert labels_of({base: "base", other: "7.2"}) == {base: "UML 6.1.192", other: "UML 7.2.7"}
    assert labels_of({base: "base", patched: "./linux", other: "7.2"}) == {
        base: "UML 6.1.192 (base)",
        patched: "UML 6.1.192 (./linux)",
        other: "UML 7.2.7",
    }


def test_a_version_that_stands_for_two_builds_does_not_tell_them_apart() -> None:
    installed, mine = named(""), named("mine")
    assert labels_of({installed: "6.1", mine: "6.1"}) == {
        installed: "UML 6.1.192 (6.1: installed)",
        mine: "UML 6.1.192 (6.1: mine)",
    }
