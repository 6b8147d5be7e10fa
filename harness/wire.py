"""Reads JSON of the crash disk and of the store into dataclasses."""

from functools import cache
from typing import Self

from pydantic import ConfigDict, TypeAdapter, ValidationError

from postcrash.model.validation import place_of, shown


class WireError(ValueError):
    """JSON has another form than expected. The text names the class, the field, and the offending value."""


class Message:
    """The base of frozen dataclasses whose fields are the fields of a JSON object."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")

    @classmethod
    def from_wire(cls, wire: object) -> Self:
        """Reads a message from decoded JSON. Raises `WireError`."""
        try:
            return cls._reader().validate_python(wire)
        except ValidationError as error:
            wrong = error.errors()[0]
            place = place_of((cls.__name__, *wrong["loc"]))
            raise WireError(f"{place}: {wrong['msg']}, found {shown(wrong['input'])}") from error

    @classmethod
    @cache
    def _reader(cls) -> TypeAdapter[Self]:
        return TypeAdapter(cls)
