"""Properties of crash behaviour. docs/properties.md says how each is read.

A new property is one file with a subclass of `Property`, or a row in a file of rows; `kinds.py` has the three
classes of most rows. A class of its own needs a place in `GROUPS`. Tests ask for whatever else it needs: the same
property as a formula (tests/unit/properties/formulas.py), and a place in `TORN_BLOCKS` if it is about one block.
"""

from postcrash.model.validation import shown
from postcrash.properties.atomicity import ATOMICITY
from postcrash.properties.durability import DURABILITY
from postcrash.properties.ordering import ORDERING
from postcrash.properties.osdi14 import OSDI14
from postcrash.properties.p1_ordered_directory_operations import OrderedDirectoryOperations
from postcrash.properties.p2_safe_appends import SafeAppends, SafeAppendsOrNulls
from postcrash.properties.p3_ordered_data_appends import OrderedDataAppends
from postcrash.properties.p4_safe_new_file_flush import SafeNewFileFlush
from postcrash.properties.p5_safe_rename import SafeRename
from postcrash.properties.property import Property
from postcrash.properties.sqlite import SQLITE

HOTDEP13: tuple[Property, ...] = (
    OrderedDirectoryOperations(),
    SafeAppends(),
    SafeAppendsOrNulls(),
    OrderedDataAppends(),
    SafeNewFileFlush(),
    SafeRename(),
)
"""The properties of tables and checks unless others are named."""

GROUPS: dict[str, tuple[Property, ...]] = {
    "hotdep13": HOTDEP13,
    "osdi14": OSDI14,
    "sqlite": SQLITE,
    "atomicity": ATOMICITY,
    "ordering": ORDERING,
    "durability": DURABILITY,
}

PROPERTIES = tuple(known for group in GROUPS.values() for known in group)
"""All properties, in the order of the tables."""


TORN_BLOCKS = frozenset({"O-block-overwrite", "O-block-append", "S-atomic-4k", "A-mmap", "A-direct"})
"""Properties about the atomicity of one block. A device that never tears a block cannot put them to the test."""


class UnknownPropertyError(ValueError):
    """There is no property or group of that name. The text lists the properties and groups that there are."""


def property_named(name: str) -> Property:
    """The property called `name`. Upper and lower case are the same. Raises `UnknownPropertyError`."""
    for known in PROPERTIES:
        if known.name.casefold() == name.casefold():
            return known
    names = ", ".join(known.name for known in PROPERTIES)
    raise UnknownPropertyError(f"no property is called {shown(name)}: there are {names}")


def properties_named(names: str) -> tuple[Property, ...]:
    """The properties in `names`, a list with commas: properties, groups, or `all`. Raises `UnknownPropertyError`."""
    chosen: dict[Property, None] = {}
    for name in names.split(","):
        group = PROPERTIES if name.strip().casefold() == "all" else GROUPS.get(name.strip().casefold())
        chosen.update(dict.fromkeys(group or (_property_or_group(name.strip()),)))
    return tuple(chosen)


def _property_or_group(name: str) -> Property:
    try:
        return property_named(name)
    except UnknownPropertyError as error:
        raise UnknownPropertyError(f"{error}; and the groups all, {', '.join(GROUPS)}") from None


__all__ = [
    "GROUPS",
    "HOTDEP13",
    "PROPERTIES",
    "TORN_BLOCKS",
    "Property",
    "UnknownPropertyError",
    "properties_named",
    "property_named",
]
