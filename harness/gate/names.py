"""Names in the catalogues. Shells complete them, and editors complete them in a gate's file."""

from postcrash.apps.catalogue import applications
from postcrash.properties import GROUPS, PROPERTIES
from postcrash.targets import STACKS, TARGETS, VARIANTS


def target_names() -> tuple[str, ...]:
    """Targets, with the names for all of the catalogue and all variants."""
    return ("all", "variants", "stacks", *(target.name for target in (*TARGETS, *VARIANTS, *STACKS)))


def property_names() -> tuple[str, ...]:
    """Properties and their groups, with the name for all of them."""
    return ("all", *GROUPS, *(prop.name for prop in PROPERTIES))


def application_names() -> tuple[str, ...]:
    """Applications of the catalogue."""
    return tuple(application.name for application in applications())
