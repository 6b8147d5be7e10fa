"""Builds of kernels: two builds of one version are different kernels."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

SHOWN_DIGITS = 12
"""Enough digits of a SHA-256 to tell the kernels of one user apart."""


@dataclass(frozen=True, slots=True)
class KernelBuild:
    """A build of a kernel. Builds with the same `content` are the same; the other fields help people to find it.

    content        SHA-256 of the kernel's file
    name           given by the user: in `postcrash kernels list`, or its file; empty for the installed kernel
    build_id       the linker's note NT_GNU_BUILD_ID, hexadecimal; empty if there is none
    commit         the source's commit, if the version names it (CONFIG_LOCALVERSION_AUTO); otherwise empty
    configuration  SHA-256 of its configuration; empty if it is not known
    """

    content: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    name: str = ""
    build_id: str = ""
    commit: str = ""
    configuration: str = ""

    @property
    def short(self) -> str:
        """A few digits that identify it, such as `sha256:1a2b3c4d5e6f`."""
        return f"sha256:{self.content[:SHOWN_DIGITS]}"

    @property
    def brief(self) -> str:
        """The name and the digits that identify it, such as `patched, sha256:1a2b3c4d5e6f`."""
        return ", ".join(filter(None, (self.name, self.short)))

    @property
    def description(self) -> str:
        """All fields in one line, such as `patched, build id 1a2b…, commit 5b1e…, sha256:1a2b3c4d5e6f`."""
        configuration = self.configuration and f"configuration sha256:{self.configuration[:SHOWN_DIGITS]}"
        build_id, commit = self.build_id and f"build id {self.build_id}", self.commit and f"commit {self.commit}"
        return ", ".join(filter(None, (self.name, build_id, commit, configuration, self.short)))


@dataclass(frozen=True, slots=True)
class ComparedWith:
    """The reference that a comparison's judge compared with.

    kernel  its label, guest: the digest of its guest, built: the build of its kernel
    target  the digest of its target
    """

    kernel: str
    guest: str
    built: KernelBuild | None
    target: str
