"""What documents promise of crashes: the rules of `promises.toml`, and what they mean for a verdict.

A verdict is evidence of what a file system does. Its standing says whether a document promised this: docs/promises.md.
"""

import fnmatch
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pydantic

from postcrash.model import Verdict, worst
from postcrash.targets import Rule, Target

_schema = pydantic.TypeAdapter(dict[str, Rule])


def _rules(file: str) -> Mapping[str, Rule]:
    return _schema.validate_python(tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8")))


RULES = _rules("promises.toml")
"""The rules by their names, in the order in which they apply."""
PRACTICE_RULES = _rules("practice.toml")
"""The rules for what no document promises, but developers expect of each other."""


class Standing(Enum):
    """What a decided verdict means together with the promise."""

    KEPT = "kept"
    BROKEN = "broken"
    PROVIDED = "provided"
    NOT_PROVIDED = "not provided"


@dataclass(frozen=True, slots=True)
class Clause:
    """A rule in the form in which results cite it."""

    rule: str
    statement: str
    source: str

    @property
    def cited(self) -> str:
        """For people: the statement and its source."""
        return f"{self.statement.removesuffix('.')} ({self.source})"


@dataclass(frozen=True, slots=True)
class Statements:
    """What documents say of one judge on one target: a promise, that there is none (`denial`), or nothing."""

    promise: Clause | None
    denial: Clause | None

    def standing(self, verdict: Verdict) -> Standing | None:
        """The standing of a verdict. None if the verdict is undecided."""
        if verdict is Verdict.UNDECIDED:
            return None
        if self.promise:
            return Standing.KEPT if verdict is Verdict.HOLDS else Standing.BROKEN
        return Standing.PROVIDED if verdict is Verdict.HOLDS else Standing.NOT_PROVIDED


def statements_of(target: Target, model: str, judge: str, rules: Mapping[str, Rule] = RULES) -> Statements:
    """What `rules` and the target's own rules say of the property or checker `judge`, on a drive of the device `model`.

    A denial takes back whatever other rules promise. If several rules apply, the first is cited.
    """
    speaking = [
        (Clause(name, rule.statement, rule.source), rule)
        for name, rule in {**rules, **target.rules}.items()
        if rule.names(judge) and rule.speaks_of(target.fstype, target.words, model)
    ]
    denial = next((clause for clause, rule in speaking if rule.denies), None)
    promise = next((clause for clause, rule in speaking if rule.promises), None)
    return Statements(None if denial else promise, denial)


def practice_of(target: Target, model: str, judge: str) -> Clause | None:
    """The rule that expects of file systems like `target` what the checker `judge` says. None if there is none.

    Nothing is expected where a document takes every promise back, as without barriers.
    """
    if statements_of(target, model, judge).denial:
        return None
    return statements_of(target, model, judge, PRACTICE_RULES).promise


def standing_text(about: Statements, verdict: Verdict) -> str:
    """In words, with the rule, and its source if it is broken: `kept: sync`, `broken: sync (sync(2), NOTES)`.

    Without a rule it is `provided` or `not provided`. It is empty if the verdict is undecided.
    """
    standing, clause = about.standing(verdict), about.promise or about.denial
    if standing is None or clause is None:
        return standing.value if standing else ""
    source = f" ({clause.source})" if verdict is Verdict.VIOLATED else ""
    return f"{standing.value}: {clause.rule}{source}"


def verdict_on_promises(judged: Iterable[tuple[Verdict, Statements]]) -> Verdict:
    """The worst verdict on what was promised. UNDECIDED if nothing was promised."""
    return worst([verdict for verdict, about in judged if about.promise] or [Verdict.UNDECIDED])


def unknown_names(rules: Mapping[str, Rule], known: Iterable[str]) -> Iterator[str]:
    """A message for each name in `rules` that is none of the `known` properties and checkers."""
    known = frozenset(known)
    for name, rule in rules.items():
        for pattern in (*rule.promises, *rule.denies):
            if not fnmatch.filter(known, pattern):
                yield f"rule {name}: no property or checker is called {pattern!r}"
