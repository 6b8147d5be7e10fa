"""The glossary gives each word one meaning."""

from pathlib import Path

GLOSSARY = Path(__file__).resolve().parents[3] / "docs/glossary.md"
HEADINGS = ("word", "---")


def defined(page: str) -> list[str]:
    """The words in the first columns of the page's tables, in order. A row can explain several words."""
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    return [word for row in rows if row not in HEADINGS for word in row.split(", ")]


def repeated(words: list[str]) -> list[str]:
    return sorted({word for word in words if words.count(word) > 1})


def test_no_word_has_two_entries() -> None:
    words = defined(GLOSSARY.read_text(encoding="utf-8"))
    assert {"workload", "kernel", "guest", "output"} <= set(words)
    assert repeated(words) == []


def test_a_word_with_two_entries_is_noticed() -> None:
    page = "# Words\n\n| word | meaning |\n| --- | --- |\n| box | a |\n| in flight, box | b |\n"
    assert repeated(defined(page)) == ["box"]
