"""JSON of the crash disk and of the store becomes dataclasses, and what does not fit is refused with its place."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from postcrash.harness.wire import Message, WireError


@dataclass(frozen=True, slots=True)
class Part(Message):
    """A message within another."""

    name: str
    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Whole(Message):
    """A message with others in it."""

    count: int
    parts: tuple[Part, ...]
    kind: Literal["input", "lost"] = "lost"
    last: Part | None = None


@dataclass(frozen=True, slots=True)
class Even(Message):
    """A message that checks itself."""

    count: int

    def __post_init__(self) -> None:
        if self.count % 2:
            raise ValueError(f"{self.count} is odd")


WIRE: dict[str, Any] = {"count": 2**70, "parts": [{"name": "a", "pairs": [[0, 1]]}], "last": {"name": "b"}}


def test_a_message_has_the_fields_of_the_object() -> None:
    assert Whole.from_wire(WIRE) == Whole(2**70, (Part("a", ((0, 1),)),), "lost", Part("b"))


def test_each_class_reads_its_own_form() -> None:
    assert Part.from_wire({"name": "a"}) == Part("a")
    assert Even.from_wire({"count": 2}) == Even(2)
    with pytest.raises(WireError, match=r"^Even\.name: "):
        Even.from_wire({"name": "a", "count": 2})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"more": 1}, "Whole.more: Unexpected keyword argument, found 1"),
        ({"count": "many"}, "Whole.count: Input should be a valid integer"),
        ({"count": None}, "Whole.count: Input should be a valid integer, found None"),
        ({"kind": "other"}, "Whole.kind: Input should be 'input' or 'lost', found 'other'"),
        ({"parts": [{"name": "a"}, {"nam": "b"}]}, "Whole.parts.1.name: Field required, found {'nam': 'b'}"),
        ({"parts": [{"name": 3}]}, "Whole.parts.0.name: Input should be a valid string, found 3"),
        ({"parts": [{"name": "a", "pairs": [[0]]}]}, "Whole.parts.0.pairs.0.1: Field required, found [0]"),
        ({"parts": [{"name": "a", "pairs": [[0, 1, 2]]}]}, "Whole.parts.0.pairs.0: Tuple should have at most 2 items"),
        ({"last": []}, "Whole.last: "),
    ],
)
def test_what_does_not_fit_is_named_with_its_class_and_its_place(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(WireError) as caught:
        Whole.from_wire({**WIRE, **changed})
    assert str(caught.value).startswith(said)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(WireError, match=r"^Whole\.parts: Field required, found \{'count': 1\}$"):
        Whole.from_wire({"count": 1})


@pytest.mark.parametrize("wire", [None, 7, "text", [], [{"count": 2}]])
def test_what_is_no_object_is_refused(wire: object) -> None:
    with pytest.raises(WireError, match=r"^Even: .*, found "):
        Even.from_wire(wire)


def test_what_a_message_says_against_itself_is_told_as_such() -> None:
    with pytest.raises(WireError, match=r"^Even: Value error, 3 is odd, found \{'count': 3\}$"):
        Even.from_wire({"count": 3})


def test_the_message_of_an_error_is_short_and_can_be_shown() -> None:
    """What does not fit may be megabytes, and a field's name may be anything."""
    for wire in ({**WIRE, "count": "x" * 10**6}, {**WIRE, "\x1b[31m" + "y" * 10**6: 1}):
        with pytest.raises(WireError) as caught:
            Whole.from_wire(wire)
        assert len(str(caught.value)) < 400
        assert str(caught.value).isprintable()
