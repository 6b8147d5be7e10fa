"""The text of a finding for a mailing list."""

from dataclasses import replace
from typing import Any

from postcrash.reports.script.mail import SUBJECT_WIDTH, WIDTH, Mail, mail
from postcrash.reports.store.explained import Explanation
from postcrash.reports.store.kernel_build import KernelBuild
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
    assert all(len(line) <= WIDTH or len(line.split()) == 1 for line in lines[1:]), head


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


def test_what_a_guest_said_cannot_move_the_cursor(crash: StoredFinding) -> None:
    assert "\x1b" not in text_of(crash, message="A is \x1b[2J")


def test_the_build_of_the_kernel_is_in_the_mail(crash: StoredFinding) -> None:
    """Developers have many builds of one version."""
    built = KernelBuild("1a" * 32, "patched", "b5" * 20, "5b1e6d3f0a7c")
    told = " ".join(text_of(crash, built=built).split())
    name = f"Kernel: UML 6.1.176 (patched, build id {'b5' * 20}, commit 5b1e6d3f0a7c, sha256:1a1a1a1a1a1a) mkfs:"
    assert name in told
