"""Mount options and features of mkfs, as the file `options.toml` lists them, each as a target to try."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import pydantic
from pydantic import ConfigDict

from postcrash.model.validation import read_toml
from postcrash.targets.catalogue import target_named
from postcrash.targets.target import Target

_FILE = Path(__file__).resolve().with_name("options.toml")
_Pair = Annotated[tuple[str, ...], pydantic.Field(min_length=2, max_length=2)]


@dataclass(frozen=True, slots=True)
class TriedOption:
    """One row: arguments that are added to mkfs, and options of mount, on the file system `fstype`.

    `needs` are the options of the kernel's configuration without which it has no effect or is refused.
    """

    fstype: str
    mkfs: str
    mount: str
    like: str
    needs: tuple[str, ...]

    @property
    def label(self) -> str:
        """The row in words: `mkfs -O quota, mount -o usrquota`."""
        made = f"mkfs {self.mkfs}" if self.mkfs else ""
        mounted = f"mount -o {self.mount}" if self.mount else ""
        return ", ".join(filter(None, (made, mounted)))

    @property
    def target(self) -> Target:
        """The target with these options."""
        base = target_named(self.like)
        return replace(base, name=f"{self.fstype}-option", options=self.mount, mkfs=(*base.mkfs, *self.mkfs.split()))


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ListedOptions:
    """The options of one file system. The head of options.toml explains the fields."""

    like: str
    sources: str
    mount: tuple[str, ...]
    mkfs: tuple[str, ...]
    both: tuple[_Pair, ...]
    untried: dict[str, str]
    needs: dict[str, str] = field(default_factory=dict)

    def rows(self, fstype: str) -> Iterator[TriedOption]:
        """Each option or feature, or pair of the two, once."""
        pairs = [*(("", mount) for mount in self.mount), *((mkfs, "") for mkfs in self.mkfs), *self.both]
        for mkfs, mount in pairs:
            words = {word for text in (mount, *mkfs.split()) for word in text.split(",")}
            needs = (option for word, option in self.needs.items() if words & {word, f"{word}=v1", f"{word}=v2"})
            yield TriedOption(fstype, mkfs, mount, self.like, tuple(dict.fromkeys(needs)))


def listed_options() -> Mapping[str, ListedOptions]:
    """The options by file systems."""
    return pydantic.TypeAdapter(dict[str, ListedOptions]).validate_python(read_toml(_FILE))
