"""What is said of a machine's guests."""

import pytest

from postcrash.harness.guests.machine import _tell_unconfined


def test_the_user_is_told_once_that_guests_are_not_confined(capsys: pytest.CaptureFixture[str]) -> None:
    _tell_unconfined.cache_clear()
    for _ in range(2):
        _tell_unconfined("Operation not permitted")
    said = capsys.readouterr().err
    assert said.count("guests are not confined: Operation not permitted") == 1
    assert "SECURITY.md" in said
