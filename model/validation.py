"""Words an error message for an object that does not fit a schema."""

from pydantic import ValidationError

_SHOWN_MAX = 80


def first_objection(error: ValidationError) -> str:
    """The first thing that is wrong: its place, the reason, and what was found there (cut after 80 characters)."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"])) or "its text"
    if first["type"] in {"missing", "json_invalid"}:
        return f"{place}: {first['msg']}"
    found = repr(first["input"])
    return f"{place}: {first['msg']}, found {found if len(found) <= _SHOWN_MAX else found[:_SHOWN_MAX] + '…'}"
