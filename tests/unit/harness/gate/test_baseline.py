"""Known failures: which lines accept which failures, and which are fixed."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.gate.baseline import (
    KernelRange,
    add_lines,
    compared_with,
    lines_for,
    load_baseline,
    unseen_lines,
)
from postcrash.harness.gate.earlier_runs import Sightings
from postcrash.harness.gate.merging import fixed_lines
from postcrash.model import Verdict
from postcrash.store.gate_run import INTERRUPTED, ITEMS_MAX, NO_TIME, TIME_SPENT, Part, Sighting

from .conftest import CAUSE, FINDING, OTHER, failure, part


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("*", ["UML 6.1.176", "QEMU/KVM 7.2.0-rc1", "a kernel without a version"], []),
        (
            "6.1",
            ["UML 6.1", "UML 6.1.176", "QEMU/TCG 6.1.0-47-amd64"],
            ["UML 6.10", "UML 6.12.1", "UML 5.10.1", "none"],
        ),
        ("6.1.5", ["UML 6.1.5"], ["UML 6.1.4", "UML 6.1.50", "UML 6.1"]),
        ("5.10..6.1", ["UML 5.10", "UML 5.15.2", "UML 6.1.999"], ["UML 5.9", "UML 6.2", "UML 6.12"]),
        ("6.1..", ["UML 6.1", "UML 7.2"], ["UML 6.0.9"]),
        ("..6.1", ["UML 6.1.176", "UML 4.19"], ["UML 6.2"]),
    ],
)
def test_ranges_of_kernels(text: str, inside: list[str], outside: list[str]) -> None:
    kernels = KernelRange.parse(text)
    assert [label for label in (*inside, *outside) if kernels.has(label)] == inside


@pytest.mark.parametrize("text", ["", "..", "6.1-6.2", "six", "6.1..6.2..6.3", "6.1 ", ".6", "**"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ValueError, match="no range of kernels"):
        KernelRange.parse(text)


def baseline(folder: Path, text: str) -> Path:
    file = folder / "known.txt"
    file.write_text(text)
    return file


def test_a_line_accepts_a_failure_by_its_cause_or_by_its_finding(tmp_path: Path) -> None:
    for id in (CAUSE, FINDING, "f-" + "1" * 16):
        lines = load_baseline(baseline(tmp_path, f"# a comment\n\n{id} violated 6.1 # because\n"))
        (known,) = compared_with(lines, [part(failure(found="f-" + "1" * 16))])
        assert (known.failures[0].known, known.gate_verdict, known.verdict) == ("because", Verdict.HOLDS, "violated")


@pytest.mark.parametrize("line", [f"{OTHER} violated *", f"{CAUSE} undecided *", f"{CAUSE} violated 7.2"])
def test_nothing_hides_behind_another_line(tmp_path: Path, line: str) -> None:
    """Not behind one of another cause, another verdict, or another kernel."""
    lines = load_baseline(baseline(tmp_path, f"{line} # because\n"))
    (told,) = compared_with(lines, [part(failure())])
    assert (told.failures[0].known, told.gate_verdict) == (None, Verdict.VIOLATED)


def test_a_new_failure_beside_a_known_one(tmp_path: Path) -> None:
    lines = load_baseline(baseline(tmp_path, f"{CAUSE} violated * # because\n"))
    (told,) = compared_with(lines, [part(failure(), failure(cause=OTHER))])
    assert [each.cause for each in told.new] == [OTHER]
    assert told.gate_verdict is Verdict.VIOLATED


PLACE = Sighting("small", "ext4-current", "cache", "6.1", "")


def fixed(folder: Path, text: str, *parts: Part, seen: Iterable[Sighting] = (PLACE,)) -> list[int]:
    lines = load_baseline(baseline(folder, text))
    return [line.line for line in fixed_lines(unseen_lines(lines, parts, lambda id: seen), parts)]


def test_what_is_not_there_any_more_is_fixed(tmp_path: Path) -> None:
    text = f"{CAUSE} violated 6.1 # one\n{OTHER} violated 6.1 # two\n"
    assert fixed(tmp_path, text, part(failure())) == [2]
    assert fixed(tmp_path, text, part(failure()), seen=()) == []


def test_what_was_not_looked_at_is_not_fixed(tmp_path: Path) -> None:
    """Neither if something could not be decided, be that known or new, nor if an operation was not there."""
    text = f"{CAUSE} violated * # one\n{OTHER} undecided * # two\n"
    for cause in (OTHER, "c-" + "2" * 16):
        assert fixed(tmp_path, text, part(), part(failure(cause=cause, verdict="undecided"))) == []
    assert fixed(tmp_path, text, part(), part(lacking={"reflink": 1})) == []
    assert fixed(tmp_path, text, part(), part(not_run=1)) == []
    assert fixed(tmp_path, text, part(), part()) == [1, 2]


def test_a_line_about_a_kernel_that_was_not_run_is_not_fixed(tmp_path: Path) -> None:
    """Another job runs on that kernel. Its store may have seen the failure, and so may this one."""
    text = f"{CAUSE} violated 6.1 # here\n{CAUSE} violated 6.12 # the other job's kernel\n"
    on_both = [PLACE, PLACE._replace(series="6.12")]
    for seen in ([PLACE], on_both):
        assert fixed(tmp_path, text, part(failure()), seen=seen) == []
        assert fixed(tmp_path, text, part(), seen=seen) == [1]
    assert fixed(tmp_path, text, part(), part(kernel="UML 6.12.1"), seen=on_both) == [1, 2]


def test_a_line_about_other_releases_of_the_series_is_not_fixed(tmp_path: Path) -> None:
    text = f"{CAUSE} violated 6.1.50..6.1.60 # why\n"
    for failures in ((), (failure(),)):
        assert fixed(tmp_path, text, part(*failures, kernel="UML 6.1.70")) == []
    assert fixed(tmp_path, text, part(kernel="UML 6.1.55")) == [1]


def test_what_can_be_seen_is_no_hidden_character(tmp_path: Path) -> None:
    text = f"\ufeff# mine\n{CAUSE} violated * # siehe\u00a0Liste, soft\u00adware, \u3000, \U0001f469\u200d\U0001f52c\n"
    assert [line.number for line in load_baseline(baseline(tmp_path, text))] == [2]


def test_a_failure_that_has_another_verdict_now_is_not_fixed(tmp_path: Path) -> None:
    assert fixed(tmp_path, f"{CAUSE} undecided 6.1 # one\n", part(failure())) == []


@pytest.mark.parametrize(
    ("kernels", "has", "has_not"),
    [
        ("*", ["6.1", "*"], []),
        ("6.1", ["6.1"], ["6.12", "5.10", "*"]),
        ("6.1.5", ["6.1"], ["6.2"]),
        ("6.1.5..6.6.9", ["6.1", "6.2", "6.6"], ["6.0", "6.7"]),
        ("6..", ["6.1", "7.2"], ["5.19"]),
    ],
)
def test_ranges_that_may_have_a_kernel_of_a_series(kernels: str, has: list[str], has_not: list[str]) -> None:
    assert [series for series in (*has, *has_not) if KernelRange.parse(kernels).may_have(series)] == has


def test_only_places_where_a_failure_was_seen_can_show_it_again(tmp_path: Path) -> None:
    sightings = Sightings(tmp_path)
    sightings.add([part(failure(finding="")), part(failure(finding=""), kernel="UML 6.12.1"), part(target="xfs")])
    known, text = Sightings(tmp_path), f"{CAUSE} violated * # one\n{OTHER} violated * # two\n"
    both = [part(), part(kernel="UML 6.12.9"), part(target="btrfs")]
    assert fixed(tmp_path, text, *both, seen=known.places(CAUSE)) == [1, 2]
    assert fixed(tmp_path, text, *both[:1], seen=known.places(CAUSE)) == []
    assert fixed(tmp_path, text, part(target="xfs"), *both[1:], seen=known.places(CAUSE)) == []
    assert known.places(OTHER) == frozenset()
    (tmp_path / "gate-seen.json").write_text("[")
    assert Sightings(tmp_path).places(CAUSE) == frozenset()


def test_a_part_that_asks_something_else_cannot_show_that_a_failure_is_gone(tmp_path: Path) -> None:
    """Such as fewer workloads. Once the failure was seen there, too, the part can."""
    text = f"{CAUSE} violated * # one\n"
    sightings = Sightings(tmp_path)
    sightings.add([part(failure(finding=""), section_digest="300 workloads")])
    assert fixed(tmp_path, text, part(section_digest="300 workloads"), seen=sightings.places(CAUSE)) == [1]
    assert fixed(tmp_path, text, part(section_digest="10 workloads"), seen=sightings.places(CAUSE)) == []
    sightings.add([part(failure(finding=""), section_digest="10 workloads")])
    assert fixed(tmp_path, text, part(section_digest="10 workloads"), seen=sightings.places(CAUSE)) == [1]


@pytest.mark.parametrize("text", ["c-12 violated * # typing\n", "\xff"])
def test_a_file_that_was_spoilt_meanwhile_is_not_added_to(tmp_path: Path, text: str) -> None:
    file = tmp_path / "known.txt"
    file.write_bytes(b"# mine\n" + text.encode("latin-1"))
    before = file.read_bytes()
    with pytest.raises(UsageError, match=f"^{re.escape(str(file))}:(2: 'c-12' is neither| not UTF-8)"):
        add_lines(file, lines_for([(failure(), part())], "why", limited=True))
    assert file.read_bytes() == before


def test_what_a_result_could_not_hold_is_refused(tmp_path: Path) -> None:
    long = baseline(tmp_path, f"{CAUSE} violated * # {'x' * 2_001}\n")
    with pytest.raises(UsageError, match=r":1: the reason has 2001 characters, and may have 2000$"):
        load_baseline(long)
    many = baseline(tmp_path, "".join(f"c-{number:016x} violated * # x\n" for number in range(ITEMS_MAX + 1)))
    with pytest.raises(UsageError, match=r":100001: more than 100000 lines$"):
        load_baseline(many)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{CAUSE} violated *", "1: expected"),
        (f"# fine\n{CAUSE} violated # why", "2: expected"),
        (f"{CAUSE} violated * #  ", "1: expected"),
        ("c-12 violated * # why", "1: 'c-12' is neither"),
        (f"{CAUSE} broken * # why", "1: 'broken' is neither"),
        (f"{CAUSE} violated six # why", "1: 'six' is no range"),
        (f"{CAUSE} violated {'6.' * 5000} # why", "1: '6.6.6.[6.]*… is no range"),
        (f"{CAUSE} violated {'6' * 5000} # why", "1: '6666*… is no range"),
        (f"{CAUSE} violated * # why\n{CAUSE} violated * # again", "2: the same as line 1"),
        (f"{CAUSE} violated * <=3 # why\n{CAUSE} violated * # again", "2: the same as line 1"),
        (f"{CAUSE} violated * 3 # why", "1: '3' is no number of workloads such as <=3"),
        (f"{CAUSE} violated * <=-1 # why", "1: '<=-1' is no number"),
        (f"{CAUSE} violated * <=0 # why", "1: '<=0' is no number"),
        (f"{CAUSE} violated 6.12..6.1 # why", "1: '6.12..6.1' ends before it begins"),
        (f"# nothing\x85{CAUSE} violated * # why", r"1: '\\x85' is a character that nobody can see"),
        (f"# nothing\u2028{CAUSE} violated * # why", r"1: '\\u2028' is a character"),
        (f"# \u202e{CAUSE} violated * # why", r"1: '\\u202e' is a character"),
        (f"\n{CAUSE} violated * # \x1b[31m", r"2: '\\x1b' is a character"),
    ],
)
def test_errors_have_a_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"known.txt:{said}"):
        load_baseline(baseline(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert load_baseline(tmp_path / "absent") == ()
    (tmp_path / "latin").write_bytes(b"\xe4")
    for place in ("latin", "."):
        with pytest.raises(UsageError):
            load_baseline(tmp_path / place)


def test_lines_that_were_added_accept_the_failure(tmp_path: Path) -> None:
    file, told = tmp_path / "known.txt", part(failure(finding=""))
    for _ in range(2):
        add_lines(file, lines_for([(each, told) for each in told.new], "two\nlines", limited=True))
        (told,) = compared_with(load_baseline(file), [told])
    assert told.failures[0].known == "two lines"
    assert file.read_text().count(CAUSE) == 1


def test_a_known_failure_that_spreads_is_new(tmp_path: Path) -> None:
    """Nothing new hides behind an old line: the words are the same, and other workloads say them."""
    lines = load_baseline(baseline(tmp_path, f"{CAUSE} violated 6.1 <=3 # because\n"))
    (known,) = compared_with(lines, [part(failure(workloads=3))])
    (grown,) = compared_with(lines, [part(failure(workloads=4))])
    assert (known.gate_verdict, grown.gate_verdict) == (Verdict.HOLDS, Verdict.VIOLATED)
    assert grown.failures[0].growth == "known in at most 3 workloads (because), and now in 4"
    assert unseen_lines(lines, [grown], lambda id: [PLACE]) == ()


def test_of_several_lines_the_one_that_accepts_most_counts(tmp_path: Path) -> None:
    lines = load_baseline(
        baseline(
            tmp_path, f"{CAUSE} violated * <=3 # few\n{CAUSE} violated 6.1 # all\n{FINDING} violated * <=9 # nine\n"
        )
    )
    (told,) = compared_with(lines, [part(failure(workloads=900))])
    assert (told.failures[0].known, told.gate_verdict) == ("all", Verdict.HOLDS)


def test_to_accept_again_what_has_spread_changes_its_line(tmp_path: Path) -> None:
    file = baseline(tmp_path, f"# mine\n{CAUSE} violated 6.1 <=3 # because\n{OTHER} violated * # other\n")
    parts = [(failure(workloads=count), part()) for count in (5, 900, 7)]
    add_lines(file, lines_for(parts, "it spreads", limited=True))
    lines = load_baseline(file)
    assert [(line.id, line.limit, line.why) for line in lines] == [(CAUSE, 900, "it spreads"), (OTHER, None, "other")]
    assert file.read_text().startswith("# mine\n")


def test_random_workloads_are_accepted_without_a_number(tmp_path: Path) -> None:
    """Shards draw others than a gate without shards. It is the same with one random part beside one that is none."""
    file, both = tmp_path / "known.txt", [(failure(workloads=3), part(kind=kind)) for kind in ("hunt", "random")]
    for found, most in ((both[:1], 3), (both[1:], None), (both, None)):
        add_lines(file, lines_for(found, "why", limited=True))
        assert [line.limit for line in load_baseline(file)] == [most]


@pytest.mark.parametrize(("count", "limited"), [(5, False), (0, True)])
def test_what_is_not_counted_has_no_limit(tmp_path: Path, count: int, limited: bool) -> None:
    file, found = tmp_path / "known.txt", failure(workloads=count)
    add_lines(file, lines_for([(found, part())], "why", limited=limited))
    assert [line.limit for line in load_baseline(file)] == [None]


def test_what_could_not_be_decided_is_accepted_in_as_many_workloads_only(tmp_path: Path) -> None:
    file, undecided = tmp_path / "known.txt", {"verdict": "undecided", "finding": ""}
    add_lines(file, lines_for([(failure(**undecided, workloads=1), part())], "once", limited=True))
    lines = load_baseline(file)
    for name, count, verdict in (
        ("small", 1, Verdict.HOLDS),
        ("small", 2, Verdict.UNDECIDED),
        ("big", 300, Verdict.UNDECIDED),
    ):
        (told,) = compared_with(lines, [part(failure(**undecided, workloads=count), name=name)])
        assert told.gate_verdict is verdict


def test_lines_of_another_system_end_with_two_characters(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    file.write_bytes(f"# mine\r\n{CAUSE} violated * # because\r\n".encode())
    assert [(line.number, line.why) for line in load_baseline(file)] == [(2, "because")]


@pytest.mark.parametrize(
    "message", [NO_TIME, INTERRUPTED, f"crash interval N: N of N crash states; {TIME_SPENT}", TIME_SPENT]
)
def test_no_line_accepts_that_there_was_no_time(tmp_path: Path, message: str) -> None:
    lines = load_baseline(baseline(tmp_path, f"{CAUSE} undecided * # the first run had a second\n"))
    left_out = failure(verdict="undecided", judge="", message=message, finding="")
    (told,) = compared_with(lines, [part(left_out, not_run=7)])
    assert (told.failures[0].known, told.gate_verdict) == (None, Verdict.UNDECIDED)
    assert part(failure(verdict="undecided", known="known"), not_run=3).gate_verdict is Verdict.UNDECIDED


def test_a_line_accepts_that_the_recoveries_of_a_budget_are_spent(tmp_path: Path) -> None:
    lines = load_baseline(baseline(tmp_path, f"{CAUSE} undecided * # 200 are enough here\n"))
    message = "crash interval N: N of N crash states; the recoveries of the budget are spent"
    (told,) = compared_with(lines, [part(failure(verdict="undecided", message=message, finding=""))])
    assert (told.failures[0].known, told.gate_verdict) == ("200 are enough here", Verdict.HOLDS)


def test_the_record_says_what_is_accepted_of_what_must_hold(tmp_path: Path) -> None:
    """A merge does not have the baseline. It knows by this what a whole gate would accept."""
    asked = part(hold={"P1": None, "P5": "an old line"})
    lines = load_baseline(
        baseline(tmp_path, f"{asked.untested_requirement('P1').cause} undecided 6.1 # no workload renames\n")
    )
    (told,) = compared_with(lines, [asked])
    assert told.hold == {"P1": "no workload renames", "P5": None}
