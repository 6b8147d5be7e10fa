"""The text of a finding for a mailing list."""

from dataclasses import replace
from typing import Any

from postcrash.reports.script.mail import SUBJECT_WIDTH, WIDTH, Mail, mail
from postcrash.store.explanation_data import Explanation, PathComparison
from postcrash.store.kernel_build import KernelBuild
from postcrash.targets import target_named

from ..conftest import StoredFinding

TOLD = Mail(
    "The renamed file has its data.", "3 of 8 crash states break it.", "It was run: 3 of 3 times.", "#!/bin/bash\n"
)
SCRIPT_BEGINS = "---- 8< ----"


def text_of(crash: StoredFinding, told: Mail = TOLD, **changes: Any) -> str:
    explanation = crash.finding.explanation
    assert isinstance(explanation, Explanation)
    return mail(replace(crash.finding, **changes), explanation, target_named("ext4-original"), told)


def test_a_mail_says_what_was_expected_and_found_and_how(crash: StoredFinding) -> None:
    text = " ".join(text_of(crash).split())
    for part in (
        *(
            "[BUG] ext4: rename B A (operation 5)",
            "The renamed file has its data.",
            "UML 6.1.176",
            "-o noauto_da_alloc",
        ),
        *("mkfs.ext4 -q -F", "4 write B 0 5000", "found: file, 5000 bytes; bytes 0 to 5000: zeros"),
        *(
            "after the operations: file, 5000 bytes",
            "sectors 1000 to",
            "3 of 8 crash states",
            "It was run: 3 of 3 times.",
        ),
    ):
        assert part in text, part
    assert "commit <- in progress at the power cut" in text


def test_lines_fit_but_for_words_that_are_longer(crash: StoredFinding) -> None:
    head = text_of(crash).partition(SCRIPT_BEGINS)[0]
    lines = head.splitlines()
    assert len(lines[0].removeprefix("Subject: ")) <= SUBJECT_WIDTH
    assert all(len(line) <= WIDTH or len(line.removesuffix("\\").split()) == 1 for line in lines[1:]), head


def test_without_a_script_there_is_no_cut_line(crash: StoredFinding) -> None:
    assert SCRIPT_BEGINS in text_of(crash)
    assert SCRIPT_BEGINS not in text_of(crash, replace(TOLD, script=""))


def test_what_the_documentation_does_not_promise_is_said(crash: StoredFinding) -> None:
    explanation = crash.finding.explanation
    assert explanation is not None
    finding = replace(crash.finding, checker="foreign-bytes", target="ext3-writeback")
    text = mail(finding, explanation, target_named("ext3-writeback"), TOLD)
    assert "does not promise it: Data may be written after" in text
    assert "data=writeback" not in text_of(crash, checker="mounts")
    assert "It is promised: A change, such as a rename, is whole" in text_of(crash, checker="mounts")


def test_how_it_is_made_and_mounted_stands_there_as_commands(crash: StoredFinding) -> None:
    text = text_of(crash)
    assert "mkfs:     mkfs.ext4 -q -F -b 4096 -N 256 -J size=4 -U \\\n          706f7374-" in text
    assert "nodiscard \\\n          DISK\n" in text or "nodiscard DISK\n" in text
    assert "Mount:    mount -t ext4 -o noauto_da_alloc DISK /mnt" in text


def test_a_program_that_mounts_stands_there_with_its_options(crash: StoredFinding) -> None:
    explanation = crash.finding.explanation
    assert explanation is not None
    text = mail(crash.finding, explanation, target_named("fuse2fs"), TOLD)
    assert "Mount:    /usr/bin/fuse2fs DISK /mnt -o noatime" in text


def test_what_developers_hold_each_other_to_is_cited(crash: StoredFinding) -> None:
    explanation = crash.finding.explanation
    assert explanation is not None
    finding = replace(crash.finding, checker="fsync-names", target="xfs")
    text = " ".join(mail(finding, explanation, target_named("xfs"), TOLD).split())
    assert "does not promise it. File systems are held to it in practice: " in text
    assert "(fstests generic/" in text


def test_a_comparison_has_both_sides_and_the_rules_that_the_state_breaks(crash: StoredFinding) -> None:
    assert crash.finding.explanation is not None
    path = PathComparison("A", ("not there",), ("fifo",), (), True, ("file, 7 bytes",))
    told = replace(crash.finding.explanation, comparison=(path,), reference="kernel:6.1")
    finding = replace(crash.finding, checker="same-as:kernel:6.1", message="A is missing; kernel:6.1 never shows this")
    text = mail(finding, told, target_named("ext4-original"), TOLD)
    sides = ("after the operations: fifo", "on kernel:6.1: file, 7 bytes", "found: not there")
    assert " ".join(sides) in " ".join(text.split())
    assert "of all that it shows at this instant" in " ".join(text.split()).lower()
    assert "do not object to this state" in " ".join(text.split()) and "promise it" not in text
    objected = replace(told, objections=("durability: A is missing; broken: sync (sync(2))",))
    text = " ".join(mail(finding, objected, target_named("ext4-original"), TOLD).split())
    assert "whatever it is compared with. durability: A is missing; broken: sync (sync(2))." in text


def test_recipients_stand_first_and_other_kernels_behind_the_script(crash: StoredFinding) -> None:
    told = replace(
        TOLD,
        recipients=("Jane Doe <jane@example.org>", "linux-ext4@example.org"),
        other_kernels=("UML 5.10.46 (old): not shown by 4 forms of the script, once each",),
    )
    text = text_of(crash, told)
    assert text.startswith("To: Jane Doe <jane@example.org>,\n    linux-ext4@example.org\nSubject: [BUG] ext4")
    assert "Other kernels\n\n  - UML 5.10.46 (old): not shown by 4 forms" in text
    assert "Other kernels" not in text_of(crash) and "To: " not in text_of(crash)


def test_what_a_guest_said_cannot_move_the_cursor(crash: StoredFinding) -> None:
    assert "\x1b" not in text_of(crash, message="A is \x1b[2J")


def test_the_build_of_the_kernel_is_in_the_mail(crash: StoredFinding) -> None:
    """Developers have many builds of one version."""
    built = KernelBuild("1a" * 32, "patched", "b5" * 20, "5b1e6d3f0a7c")
    told = " ".join(text_of(crash, built=built).split())
    name = f"Kernel: UML 6.1.176 (patched, build id {'b5' * 20}, commit 5b1e6d3f0a7c, sha256:1a1a1a1a1a1a) mkfs:"
    assert name in told
    assert "Config:" not in told
    known = " ".join(text_of(crash, built=replace(built, configuration="c0" * 32)).split())
    assert f"Config: SHA-256 {'c0' * 32}; the archive of `postcrash bundle {crash.finding.id}` has it mkfs:" in known
