"""Names that users can give: those of the catalogues. A shell completes them, and an editor in a gate's file."""

from postcrash.apps.catalogue import applications
from postcrash.properties import GROUPS, PROPERTIES
from postcrash.targets import TARGETS, VARIANTS


def target_names() -> tuple[str, ...]:
    """Targets, and the names that stand for the catalogue and for its variants."""
    return ("all", "variants", *(target.name for target in (*TARGETS, *VARIANTS)))


def property_names() -> tuple[str, ...]:
    """Properties and their groups, and the name that stands for all of them."""
    return ("all", *GROUPS, *(prop.name for prop in PROPERTIES))


def application_names() -> tuple[str, ...]:
    """Applications."""
    return tuple(application.name for application in applications())
