"""The explanation of the crash in conftest, and of recordings with one odd thing each."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.model import WorkloadError
from postcrash.reports.explanation import epochs
from postcrash.reports.explanation.explanation import (
    EVIDENCE_LINES_MAX,
    OPERATION_CHARACTERS_MAX,
    ExplanationError,
    explain,
)
from postcrash.store.consoles import Casualty, console_file
from postcrash.store.explanation_data import Explanation

Explain = Callable[..., Explanation]


@pytest.fixture
def explain_events(crash: Any, tmp_path: Path) -> Explain:
    """Explain the state `choices` of crash interval `interval` of a recording of `events`."""

    def explained(events: list[tuple[Any, ...]], interval: int, *choices: tuple[int, int], model: str = "cache") -> Any:
        path = tmp_path / "odd.pcr"
        write_recording(path, 4096, "{}", events)
        counts = {
            "started": sum(e[0] == "started" for e in events),
            "returned": sum(e[0] == "returned" for e in events),
        }
        finding = replace(crash.finding, interval=interval, choices=choices, model=model, **counts)
        return explain(finding, Recording(path), crash.base)

    return explained


def writes(explanation: Explanation) -> list[list[tuple[str, int, int, str, int, str]]]:
    return [
        [(w.what, w.sector, w.sectors, w.flags, w.during, w.status) for w in epoch.writes]
        for epoch in explanation.epochs
    ]


def test_each_operation_says_how_far_it_was(crash: Any) -> None:
    explanation = crash.finding.explanation
    assert [(operation.number, operation.text, operation.status) for operation in explanation.operations] == [
        (1, "creat A", "set-up"),
        (2, "append A 4096", "set-up"),
        (3, "creat B", "returned"),
        (4, "write B 0 5000", "returned"),
        (5, "rename B A", "returned"),
        (6, "commit", "in progress"),
        (7, "sync", "not started"),
    ]


def test_requests_are_told_flush_by_flush(crash: Any) -> None:
    explanation = crash.finding.explanation
    assert writes(explanation) == [
        [("jbd2 superblock (sequence 0, log empty)", 1600, 8, "", 4, "stable")],
        [
            ("`write B 0 5000` (bytes 0 to 5000), zeros", 1000, 16, "", 6, "lost"),
            ("jbd2 descriptor block (transaction 8), metadata", 2000, 16, "", 6, "kept"),
            ("jbd2 commit block (transaction 8)", 2016, 8, "FUA", 6, "stable"),
        ],
    ]
    assert [epoch.ended for epoch in explanation.epochs] == ["flush", "flush, under way at the crash"]
    assert (explanation.epochs_omitted, [epoch.omitted for epoch in explanation.epochs]) == (0, [0, 0])
    assert explanation.lost == (explanation.epochs[1].writes[0],)


def test_a_long_operation_is_cut(crash: Any) -> None:
    text = crash.finding.workload_text + f"creat {'a' * 255}\n"
    made = explain(replace(crash.finding, workload_text=text), crash.recording, crash.base).operations[-1].text
    assert made == f"creat {'a' * (OPERATION_CHARACTERS_MAX - 6)}…"


def test_what_was_found_stands_beside_what_was_written(crash: Any) -> None:
    explanation = crash.finding.explanation
    assert [(path.path, path.differs) for path in explanation.comparison] == [(".", False), ("A", True)]
    assert explanation.comparison[1].found == ("file, 5000 bytes", "bytes 0 to 5000: zeros")
    assert explanation.failure == ""
    (evidence,) = explanation.evidence
    assert (evidence.title, evidence.text) == (
        "kernel log, warnings and worse",
        "<4>EXT4-fs warning (device ubdb): odd",
    )


def test_a_write_that_is_lost_in_part_is_split(crash: Any) -> None:
    finding = replace(crash.finding, choices=((1, 1),))
    explanation = explain(finding, crash.recording, crash.base)
    assert [write[0::5] for write in writes(explanation)[1]] == [
        ("`write B 0 5000` (bytes 0 to 4096)", "kept"),
        ("`write B 0 5000` (bytes 4096 to 5000), zeros", "lost"),
        ("jbd2 descriptor block (transaction 8), metadata", "kept"),
        ("jbd2 commit block (transaction 8)", "stable"),
    ]
    assert [(write.sector, write.sectors) for write in explanation.lost] == [(1008, 8)]


def test_at_the_end_all_is_stable_but_a_discard_between_operations(crash: Any) -> None:
    finding = replace(crash.finding, interval=6, choices=(), started=6, returned=6)
    explanation = explain(finding, crash.recording, crash.base)
    assert writes(explanation)[-1] == [("discard", 3000, 8, "", 0, "kept")]
    assert explanation.epochs[-1].ended == "crash"
    assert explanation.lost == ()


def test_writes_of_the_set_up_that_are_still_in_flight_are_told(explain_events: Explain) -> None:
    late = ("write", 1, 800, b"\x01" * 4096, False, False)
    early = ("write", 2, 900, b"\x02" * 4096, False, False)
    events = [early, ("complete", 2), late, ("durable",), ("started", 0), ("zero", 3, 808, 8, False)]
    explanation = explain_events(events, 1, (0, 1))
    assert writes(explanation) == [
        [("metadata", 800, 8, "", 0, "lost"), ("write-zeroes", 808, 8, "", 1, "kept")],
    ]


def test_preflush_ends_an_epoch(explain_events: Explain) -> None:
    events = [
        *[("durable",), ("started", 0)],
        *[("write", 1, 800, b"\x01" * 4096, False, False), ("complete", 1)],
        *[("flush", 2), ("flush", 3), ("complete", 3), ("complete", 2)],
        *[("write", 4, 808, b"\x01" * 4096, False, False), ("complete", 4)],
        *[("write", 5, 816, b"\x01" * 4096, True, True), ("complete", 5)],
    ]
    explanation = explain_events(events, 4)
    assert [[write[3] for write in epoch] for epoch in writes(explanation)] == [[""], [""], ["PREFLUSH FUA"]]
    assert [epoch.ended for epoch in explanation.epochs] == ["flush", "flush", "crash"]


def test_under_a_lying_drive_nothing_is_stable(crash: Any, base: Path) -> None:
    finding = replace(crash.finding, model="lying", interval=3, choices=(), started=6, returned=6)
    explanation = explain(finding, crash.recording, base)
    assert {write[5] for epoch in writes(explanation) for write in epoch} == {"kept"}


def test_long_epochs_and_long_pasts_are_abbreviated(explain_events: Explain) -> None:
    events: list[tuple[Any, ...]] = [("durable",), ("started", 0)]
    for number in range(20):
        data = ("write", number * 2, 8 * number, b"\x01" * 4096, False, False)
        events += [data, ("complete", number * 2), ("flush", number * 2 + 1), ("complete", number * 2 + 1)]
    for number in range(epochs.EPOCH_WRITES_MAX + 10):
        events += [("write", 100 + number, 800 + 16 * number, b"\x01" * 4096, False, False)]
    explanation = explain_events(events, 21, (epochs.EPOCH_WRITES_MAX + 9, 1))
    assert explanation.epochs_omitted == 20 - epochs.STABLE_EPOCHS_MAX
    assert [epoch.number for epoch in explanation.epochs] == [18, 19, 20, 21]
    last = explanation.epochs[-1]
    assert (len(last.writes), last.omitted) == (epochs.EPOCH_WRITES_MAX, 10)
    assert [write.status for write in last.writes] == ["kept"] * (epochs.EPOCH_WRITES_MAX - 1) + ["lost"]


def test_of_very_many_epochs_the_last_are_told(explain_events: Explain) -> None:
    events: list[tuple[Any, ...]] = [("durable",), ("started", 0)]
    for number in range(epochs.EPOCHS_MAX + 5):
        data = ("write", number * 2, 8 * number, b"\x01" * 4096, False, False)
        events += [data, ("complete", number * 2), ("flush", number * 2 + 1), ("complete", number * 2 + 1)]
    explanation = explain_events(events, 1, (0, 1), model="lying")
    assert explanation.epochs_omitted == 5
    assert len(explanation.epochs) == epochs.EPOCHS_MAX
    assert [write.sector for write in explanation.lost] == [0]


def test_many_lost_writes_are_counted(explain_events: Explain) -> None:
    count = epochs.LOST_MAX + 5
    events: list[tuple[Any, ...]] = [("durable",), ("started", 0)]
    events += [("write", number, 16 * number, b"\x01" * 4096, False, False) for number in range(count)]
    explanation = explain_events(events, 1, *((number, 1) for number in range(count)))
    assert (len(explanation.lost), explanation.lost_omitted) == (epochs.LOST_MAX, 5)


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        (
            {"observation": {"mount_errno": 117, "tree": [], "klog": [], "fsck": None}},
            "mount failed with EUCLEAN (Structure needs cleaning)",
        ),
        ({"observation": None, "casualty": Casualty("panic", "Oops")}, "the guest was lost: panic"),
        ({"observation": {"tree": 3}}, "the agent's report cannot be read: mount_errno: expected an integer"),
        ({"observation": {"mount_errno": 0, "tree": None, "klog": [], "fsck": {"status": 4, "output": "bad\n"}}}, ""),
    ],
)
def test_where_there_is_no_tree_nothing_is_compared(crash: Any, changes: dict[str, Any], failure: str) -> None:
    explanation = explain(replace(crash.finding, **changes), crash.recording, crash.base)
    assert explanation.comparison == ()
    assert explanation.failure.startswith(failure)
    assert bool(explanation.failure) == bool(failure)


def test_fsck_and_console_are_evidence(crash: Any) -> None:
    observation = {**crash.finding.observation, "klog": [], "fsck": {"status": 4, "output": "Inode 12\n"}}
    lost = Casualty("hang", "a\n" * 100, "b\n" * 100)
    finding = replace(crash.finding, observation=observation, casualty=lost)
    fsck, stacks, console = explain(finding, crash.recording, crash.base).evidence
    assert (fsck.title, fsck.text) == ("fsck, exit status 4", "Inode 12")
    assert stacks.text.splitlines() == [f"({100 - EVIDENCE_LINES_MAX} earlier lines)", *["b"] * EVIDENCE_LINES_MAX]
    assert console.text == f"{console_file(lost)} in the store"


def test_an_explanation_comes_back(crash: Any) -> None:
    explanation = crash.finding.explanation
    assert Explanation.from_json(explanation.to_json()) == explanation


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"interval": 7}, ExplanationError, "crash interval 7: this recording has only 7"),
        ({"model": "absent"}, ExplanationError, "unknown device model 'absent'"),
        ({"choices": ((99, 1),)}, ExplanationError, "component 99 has no version 1"),
        ({"choices": ((0, 1), (0, 0))}, ExplanationError, "component 0 is chosen twice"),
        (
            {"returned": 6},
            ExplanationError,
            "it has no instant at which 6 operations had started and 6 had returned",
        ),
        (
            {"workload_text": "creat A\n"},
            ExplanationError,
            "workload p5-replace: started=6, returned=5 of 1 operations",
        ),
        ({"workload_text": "create A\n"}, WorkloadError, "p5-replace:1:1: expected an operation"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(
    crash: Any, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        explain(replace(crash.finding, **changes), crash.recording, crash.base)
    assert message in str(caught.value)


def test_writes_that_follow_each_other_on_the_disk_are_one(explain_events: Explain) -> None:
    events: list[tuple[Any, ...]] = [("durable",), ("started", 0)]
    events += [("write", number, 8 * number, b"\x01" * 4096, False, False) for number in range(4)]
    explanation = explain_events(events, 1, (2, 1))
    shown = [(write.sector, write.sectors, write.status) for write in explanation.epochs[0].writes]
    assert shown == [(0, 16, "kept"), (16, 8, "lost"), (24, 8, "kept")]
