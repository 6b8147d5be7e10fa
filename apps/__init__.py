"""Applications under audit: what they are, and what their own recovery and check make of a recovered folder."""

from postcrash.apps.application import CHECK_LIMITS, Application, ApplicationFileError, Package, load_application
from postcrash.apps.building import BuildError, Building
from postcrash.apps.catalogue import UnknownApplicationError, application_lists, application_named, applications
from postcrash.apps.folder import Folder, UnreadFolderError
from postcrash.apps.sandbox import CheckResult, Limits, Sandbox, SandboxError

__all__ = [
    "CHECK_LIMITS",
    "Application",
    "ApplicationFileError",
    "BuildError",
    "Building",
    "CheckResult",
    "Folder",
    "Limits",
    "Package",
    "Sandbox",
    "SandboxError",
    "UnknownApplicationError",
    "UnreadFolderError",
    "application_lists",
    "application_named",
    "applications",
    "load_application",
]
