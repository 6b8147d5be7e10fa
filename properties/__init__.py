"""Properties of crash behaviour, one a file; docs/properties.md says how each is read.

A new property is one file with a class that follows `Property`, one line here, and one call of
`conformance.check_property` in its tests.
"""

from postcrash.properties.p1_ordered_directory_operations import OrderedDirectoryOperations
from postcrash.properties.p2_safe_appends import SafeAppends, SafeAppendsOrNulls
from postcrash.properties.p3_ordered_data_appends import OrderedDataAppends
from postcrash.properties.p4_safe_new_file_flush import SafeNewFileFlush
from postcrash.properties.p5_safe_rename import SafeRename
from postcrash.properties.property import Judgement, Property

PROPERTIES: tuple[Property, ...] = (
    OrderedDirectoryOperations(),
    SafeAppends(),
    SafeAppendsOrNulls(),
    OrderedDataAppends(),
    SafeNewFileFlush(),
    SafeRename(),
)
"""All properties, in the order of the tables."""


class UnknownPropertyError(ValueError):
    """There is no property of that name; the text lists those that there are."""


def property_named(name: str) -> Property:
    """The property called `name`; upper and lower case are the same. Raises `UnknownPropertyError`."""
    for known in PROPERTIES:
        if known.name.casefold() == name.casefold():
            return known
    names = ", ".join(known.name for known in PROPERTIES)
    raise UnknownPropertyError(f"no property is called {name!r}: there are {names}")


__all__ = ["PROPERTIES", "Judgement", "Property", "UnknownPropertyError", "property_named"]
