"""Turns dataclasses into JSON values and back, with pydantic. Reading is strict: fields and types must match exactly.

Only a field that has a default may be missing, because an older version may not have known it. A member of an
enumeration is written as its name in lower case.
"""

from functools import cache, partial
from typing import Any, Self, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import PydanticCustomError, SchemaSerializer, SchemaValidator, ValidationError
from pydantic_core import core_schema as schemas

from postcrash.model.validation import shown

Json = dict[str, Any]
T = TypeVar("T")
_NAMES = {"int": "an integer", "str": "text", "bool": "true or false", "dict": "an object"}


class PlainError(ValueError):
    """A JSON value is not as it was written. The text names the place and the offending value."""

    def __init__(self, place: str, expected: str, found: object) -> None:
        super().__init__(f"{place}: expected {expected}, found {shown(found)}")


def to_plain(value: Any) -> Any:
    """Returns `value` as decoded JSON: objects for dataclasses, arrays for tuples."""
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    kind: Any = type(value)
    return _codec(kind)[1].to_python(value, warnings=False)


def from_plain(kind: type[T], value: object, place: str) -> T:
    """Returns the dataclass `kind` from which `to_plain` made `value`. Raises `PlainError`."""
    try:
        decoded: T = _codec(cast(Any, kind))[0].validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place += "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
        found = list(first["input"]) if first["type"] == "fields" else first["input"]
        raise PlainError(place, first["msg"], found) from None
    return decoded


class JsonObject:
    """The base of dataclasses that are read and written as JSON objects with the same fields."""

    __slots__ = ()

    def to_json(self) -> Json:
        """Returns the object as decoded JSON."""
        plain: Json = to_plain(self)
        return plain

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Returns the object from which `to_json` made `value`. Raises `PlainError`."""
        return from_plain(cls, value, cls.__name__.lower())


@cache
def _codec(kind: Any) -> tuple[SchemaValidator, SchemaSerializer]:
    schema = _strict(TypeAdapter(kind).core_schema)
    return SchemaValidator(schema), SchemaSerializer(schema)


def _strict(schema: Any) -> Any:
    """Returns pydantic's schema without conversions between types, and with errors that say what is expected."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _strict(part) for name, part in schema.items()}
    match schema.get("type"):
        case "int" | "str" | "bool" | "dict" as kind:
            pattern = f" that matches {schema['pattern']}" if "pattern" in schema else ""
            return _expecting(_NAMES[kind] + pattern, {**strict, "strict": True})
        case "literal":
            return _expecting(f"one of {', '.join(schema['expected'])}", strict)
        case "enum":
            return _by_name({member.name.lower(): member for member in schema["members"]})
        case "tuple":
            strict["serialization"] = schemas.wrap_serializer_function_ser_schema(
                lambda value, items: list(items(value))
            )
            length = None if "variadic_item_index" in schema else len(schema["items_schema"])
            return schemas.no_info_before_validator_function(partial(_checked_array, length), strict)
        case "dataclass":
            required = {field["name"]: field["schema"]["type"] != "default" for field in schema["schema"]["fields"]}
            ref = strict.pop("ref")
            return schemas.no_info_before_validator_function(partial(_checked_object, required), strict, ref=ref)
    return strict


def _expecting(expected: str, schema: Any) -> Any:
    return schemas.custom_error_schema(schema, custom_error_type="expected", custom_error_message=expected)


def _by_name(members: dict[str, Any]) -> Any:
    names = _expecting(f"one of {', '.join(members)}", schemas.literal_schema(list(members)))
    as_name = schemas.plain_serializer_function_ser_schema(lambda member: member.name.lower())
    return schemas.no_info_after_validator_function(members.__getitem__, names, serialization=as_name)


def _checked_array(length: int | None, value: object) -> object:
    if not isinstance(value, list):
        raise PydanticCustomError("expected", "an array")
    if length not in (None, len(value)):
        raise PydanticCustomError("expected", f"{length} items")
    return value


def _checked_object(required: dict[str, bool], value: object) -> object:
    if not isinstance(value, dict):
        raise PydanticCustomError("expected", "an object")
    if not {name for name in required if required[name]} <= value.keys() <= required.keys():
        raise PydanticCustomError("fields", f"the fields {', '.join(required)}")
    return value
