"""A document's promise about crashes, or what it gives up, as data."""

from fnmatch import fnmatchcase
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

TomlText = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f]*$")]
TomlWords = Annotated[tuple[TomlText, ...], Field(max_length=100)]
Sentence = Annotated[TomlText, Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Rule:
    """Something that a manual page, the kernel's documentation or a standard says of crashes.

    `statement` is what the document says, in a sentence, and `source` is where. The rule either `promises` properties
    and checkers or `denies` them: names, or patterns of names as of fnmatch. The other fields limit the rule to file
    systems of one of `types` that have one of `options` and none of `unless` (words of mount's and mkfs's options), on
    drives of one of the device `models`. An empty field excludes nothing.
    """

    statement: Sentence
    source: Sentence
    promises: TomlWords = ()
    denies: TomlWords = ()
    types: TomlWords = ()
    options: TomlWords = ()
    unless: TomlWords = ()
    models: TomlWords = ()

    @model_validator(mode="after")
    def _has_one_side(self) -> Self:
        if bool(self.promises) == bool(self.denies):
            raise ValueError("a rule has either promises or denies")
        return self

    def speaks_of(self, fstype: str, words: frozenset[str], model: str) -> bool:
        """Whether the rule applies to a file system of this type with these `words` on a drive of this device model."""
        is_type = not self.types or fstype in self.types
        is_model = not self.models or model.partition(":")[0] in self.models
        has_option = not self.options or not words.isdisjoint(self.options)
        return is_type and is_model and has_option and words.isdisjoint(self.unless)

    def names(self, judge: str) -> bool:
        """Whether the rule names the property or checker called `judge`."""
        return any(fnmatchcase(judge, pattern) for pattern in (*self.promises, *self.denies))
