"""Turns frozen dataclasses into JSON values and back. Reading is strict: fields and types must match exactly. Only a
field that has a default may be missing, because an older version may not have known it.

Supported fields: int, str, bool, literals, enumerations (as the member's name in lower case), tuples, dicts (any JSON
object), dataclasses, and any of these or None.
"""

import types
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from postcrash.model.validation import shown

Json = dict[str, Any]
T = TypeVar("T")


class PlainError(ValueError):
    """A JSON value is not as it was written. The text names the place and the offending value."""

    def __init__(self, place: str, expected: str, found: object) -> None:
        super().__init__(f"{place}: expected {expected}, found {shown(found)}")


def to_plain(value: Any) -> Any:
    """`value` as JSON knows it: objects for dataclasses, arrays for tuples."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], value: object, place: str) -> T:
    """The dataclass `kind` from which `to_plain` made `value`. Raises `PlainError`."""
    return cast(T, _read(kind, value, place))


def _read(kind: Any, value: object, place: str) -> object:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        (inner,) = [option for option in get_args(kind) if option is not type(None)]
        return None if value is None else _read(inner, value, place)
    if origin is tuple:
        return _read_tuple(get_args(kind), value, place)
    if origin is Literal:
        return _read_one_of({option: option for option in get_args(kind)}, value, place)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _read_one_of({member.name.lower(): member for member in kind}, value, place)
    if is_dataclass(kind):
        return _read_dataclass(kind, value, place)
    wanted = origin or kind
    if type(value) is not wanted:
        raise PlainError(place, _NAMES[wanted], value)
    return value


_NAMES = {int: "an integer", str: "text", bool: "true or false", dict: "an object"}


def _read_one_of(allowed: dict[str, object], value: object, place: str) -> object:
    if not isinstance(value, str) or value not in allowed:
        raise PlainError(place, f"one of {', '.join(allowed)}", value)
    return allowed[value]


def _read_tuple(kinds: tuple[Any, ...], value: object, place: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise PlainError(place, "an array", value)
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(value) != len(kinds):
        raise PlainError(place, f"{len(kinds)} items", value)
    pairs = zip(kinds, value, strict=True)
    return tuple(_read(kind, item, f"{place}[{i}]") for i, (kind, item) in enumerate(pairs))


def _read_dataclass(kind: Any, value: object, place: str) -> object:
    if not isinstance(value, dict):
        raise PlainError(place, "an object", value)
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    needed = {field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING}
    if not needed <= set(map(str, value)) <= set(names):
        raise PlainError(place, f"the fields {', '.join(names)}", list(value))
    return kind(**{name: _read(hints[name], value[name], f"{place}.{name}") for name in names if name in value})
