"""docs/results/mount-options.md says what comes of each mount option and feature of mkfs."""

from pathlib import Path

import pytest

import postcrash
from listed_options import listed_options
from option_trials import all_options, results_on, tried
from postcrash.harness.examination.session import settings_for
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import Kernel, find_kernel
from postcrash.harness.guests.machine import Machine

PAGE = (Path(postcrash.__file__).resolve().parents[1] / "docs/results/mount-options.md").read_text()
SAMPLE_OF = 12
"""Without --full, one option of so many is tried."""


def check(machine: Machine, kernel: Kernel, column: int, bases: Path, every: int) -> None:
    listed = listed_options()
    said = {fstype: results_on(PAGE, fstype, column) for fstype in listed}
    options = list(all_options(listed))
    assert {(option.fstype, option.label) for option in options} == {
        (fstype, label) for fstype, labels in said.items() for label in labels
    }
    found = {
        (trial.option.fstype, trial.option.label): trial.result
        for trial in (tried(machine, kernel, option, bases) for option in options[::every])
    }
    assert found == {(fstype, label): said[fstype][label] for fstype, label in found}


def test_a_sample_is_as_the_page_says(machine: Machine, tmp_path: Path) -> None:
    check(machine, find_kernel(), 0, tmp_path, SAMPLE_OF)


@pytest.mark.full
def test_all_options_are_as_the_page_says(machine: Machine, tmp_path: Path) -> None:
    check(machine, find_kernel(), 0, tmp_path, 1)


@pytest.mark.full
def test_all_options_are_as_the_page_says_on_a_newer_kernel(newer_kernel: Kernel, tmp_path: Path) -> None:
    with Machine(settings_for(newer_kernel, guest_root(newer_kernel, cache_folder()))) as newer:
        check(newer, newer_kernel, 1, tmp_path, 1)
