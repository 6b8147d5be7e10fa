"""The filter by adversary in a real browser: what takes a stronger one than the chosen one is dimmed."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from postcrash.model import Verdict
from postcrash.properties.adversary import Adversary
from postcrash.reports.tables.matrix import Matrix
from postcrash.store.gate_run import GateRun
from postcrash.store.records import Cell

from .conftest import Reader, render_gate, render_matrix

pytestmark = pytest.mark.slow

SHOWN = ".entry:visible"
ADDRESS = "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"


@pytest.fixture
def three_adversaries(make_cell: Callable[..., Cell], make_matrix: Callable[..., Matrix]) -> str:
    cells = [
        make_cell("xfs", "P1", Verdict.VIOLATED, reason="one", adversary=Adversary.PLAIN),
        make_cell("xfs", "P2", Verdict.VIOLATED, reason="two", adversary=Adversary.FLUSH),
        make_cell("xfs", "P3", Verdict.VIOLATED, reason="three", adversary=Adversary.COMMIT),
        make_cell("xfs", "P4", Verdict.UNDECIDED, reason="four", adversary=Adversary.COMMIT),
        make_cell("xfs", "P5", Verdict.HOLDS, adversary=Adversary.COMMIT),
    ]
    return render_matrix(make_matrix(cells), [])


def test_an_adversary_dims_what_takes_a_stronger_one(reader: Reader, three_adversaries: str, run: GateRun) -> None:
    page = reader.open(three_adversaries)
    dim = page.locator("#map td.dim")
    choice = page.get_by_label("Adversary")
    for adversary, dimmed, entries in (
        ("a power cut alone", ["✗ᶠ", "✗ᶜ"], ["one", "four"]),
        (Adversary.FLUSH.shown, ["✗ᶜ"], ["one", "two", "four"]),
        (Adversary.COMMIT.shown, [], ["one", "two", "three", "four"]),
    ):
        choice.select_option(adversary)
        expect(dim).to_have_text(dimmed)
        expect(page.locator(SHOWN).locator(".message")).to_have_text(entries)
        assert page.evaluate(ADDRESS) == {"adversary": adversary}
    choice.press("Home")
    expect(dim).to_have_count(0)
    again = reader.open(three_adversaries, "#adversary=a+power+cut+alone")
    expect(again.get_by_label("Adversary")).to_have_value("a power cut alone")
    expect(again.locator("#map td.dim")).to_have_count(2)
    expect(again.locator("#rests tbody tr:not([hidden])")).to_have_count(3)
    again.evaluate("dispatchEvent(new Event('beforeprint'))")
    again.emulate_media(media="print")
    expect(again.locator(SHOWN)).to_have_count(2)
    expect(again.locator(SHOWN).first.locator(".facts")).to_contain_text("takesa power cut alone")
    again.emulate_media(media="screen")
    again.get_by_role("button", name="Clear").click()
    expect(again.locator("#map td.dim")).to_have_count(0)
    without = reader.open(render_gate(run, []), "#adversary=a+power+cut+alone")
    expect(without.get_by_label("Adversary")).to_have_count(0)
    expect(without.locator(SHOWN)).to_have_count(4)


def test_what_the_page_does_not_offer_is_no_filter(reader: Reader, three_adversaries: str) -> None:
    """Such as in an address of another report. Nothing is hidden by a choice that nobody sees."""
    page = reader.open(three_adversaries, "#adversary=a+meteor&target=ext9&standing=odd&text=two")
    expect(page.locator("#map td.dim")).to_have_count(0)
    expect(page.locator("#map tbody tr:not([hidden])")).to_have_count(5)
    assert page.evaluate(ADDRESS) == {"text": "two"}
