"""The page of mount options says what was found, and can be read again."""

from listed_options import listed_options
from option_trials import WORKS, OptionTrial, page, results_on


def test_the_page_says_of_each_kernel_what_was_found() -> None:
    listed = {"ext4": listed_options()["ext4"]}
    rows = list(listed["ext4"].rows("ext4"))
    refused = {rows[1].label: "refused: a | b", rows[2].label: WORKS}
    found = [
        [OptionTrial(row, WORKS) for row in rows],
        [OptionTrial(row, refused.get(row.label, WORKS)) for row in rows],
    ]
    text = page(["one", "two"], listed, found)
    assert results_on(text, "ext4", 0) == dict.fromkeys((row.label for row in rows), WORKS)
    assert results_on(text, "ext4", 1) == {**dict.fromkeys((row.label for row in rows), WORKS), **refused}
    assert "journal on another device" in text
