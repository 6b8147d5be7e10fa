"""Pages and sources name files and headings that exist."""

import re
from pathlib import Path

_LINK = re.compile(r"\]\(([^()\s]+)\)")
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_EXTERNAL = re.compile(r"[a-z]+:")
_PAGE = re.compile(r"(?<![\w/.])docs/[\w./-]+\.(?:md|svg|png|json|yml)")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(_BLOCK.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path, text: str) -> list[str]:
    """Links of the page to files or headings that do not exist."""
    found = []
    for link in _LINK.findall(_INLINE_CODE.sub("", _BLOCK.sub("", text))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if _EXTERNAL.match(link) or (target.exists() and not anchor):
            continue
        if not (target.is_file() and anchor in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


def missing_pages(root: Path, text: str) -> list[str]:
    return [path for path in _PAGE.findall(text) if not (root / path).exists()]


def test_every_link_of_a_page_leads_somewhere(root: Path, texts: dict[Path, str]) -> None:
    pages = {path: text for path, text in texts.items() if path.suffix == ".md"}
    assert len(pages) > 50
    dead = {path: dead_links(root / path, text) for path, text in pages.items()}
    assert {path: links for path, links in dead.items() if links} == {}


def test_every_page_that_a_source_names_exists(root: Path, texts: dict[Path, str]) -> None:
    """Unit tests name pages that they make up."""
    sources = {
        path: text for path, text in texts.items() if path.parts[:2] not in {("tests", "unit"), ("tests", "style")}
    }
    missing = {path: missing_pages(root, text) for path, text in sources.items()}
    assert {path: pages for path, pages in missing.items() if pages} == {}


def test_dead_links_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# A heading, with `code`\n\n```sh\n# no heading\n```\n")
    text = "[b](b.md#a-heading-with-code) [c](b.md#no-heading) [gone](c.md) `[code](d.md)` [web](https://example.org)"
    assert dead_links(tmp_path / "a.md", text) == ["b.md#no-heading", "c.md"]
    assert missing_pages(tmp_path, "docs/gone.md") == ["docs/gone.md"]
