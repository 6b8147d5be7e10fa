"""Changes of inputs are the same for the same number, bounded, and reach what the formats have."""

import json
import random

from ...fuzz.mutations import BYTES_MAX, mutated

TEXT = json.dumps({"size": 12, "items": [{"name": "a"}, {"name": "b"}]}).encode()


def changes(content: bytes, count: int) -> list[bytes]:
    choice = random.Random(1)
    return [mutated(content, choice, [content, b"other"]) for _ in range(count)]


def test_the_same_number_makes_the_same_changes() -> None:
    assert changes(TEXT, 100) == changes(TEXT, 100)
    assert len(set(changes(TEXT, 100))) > 80


def test_inputs_are_bounded_and_may_be_empty() -> None:
    assert all(len(content) <= BYTES_MAX for content in changes(TEXT, 500))
    assert max(map(len, changes(TEXT, 500))) == BYTES_MAX
    assert changes(b"", 100)


def test_some_changes_of_json_are_json_with_other_values() -> None:
    sound = []
    for content in changes(TEXT, 500):
        try:
            sound.append(json.loads(content))
        except (ValueError, RecursionError):
            continue
    assert len(sound) > 50
    sizes = [value["size"] for value in sound if isinstance(value, dict) and "size" in value]
    assert {2**63, None} <= {size for size in sizes if not isinstance(size, list | dict)}
