"""Shared state of all tests of a process: options, store, and one machine."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import pytest

from postcrash.harness.budget import Budget, BudgetError
from postcrash.harness.errors import CrashDiskEndedError, HarnessError, UsageError
from postcrash.harness.examination.campaign import run_plan
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.recording import settings_for_recorders
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.harness.examination.support import Support
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.files.output import kept_evidence
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.harness.guests.machine import MachineSettings
from postcrash.harness.testing.options import Options, split_targets
from postcrash.model.numbers import allow_large_numbers
from postcrash.properties import Property, UnknownPropertyError, properties_named
from postcrash.reports.explanation import explanation
from postcrash.store.store import StoreError
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class Case:
    """One of the parametrized cases of a test: a target, and a property if one is requested."""

    target: Target
    prop: Property | None = None

    def __str__(self) -> str:
        """The case in the name of the test."""
        return self.target.name if self.prop is None else f"{self.target.name}-{self.prop.name}"


class Silence:
    """Progress that is not shown, since pytest shows its own."""

    def recoveries(self, count: int) -> None:
        """See `campaign.Progress`."""

    def finished(self, plan: Plan, examination: Examination) -> None:
        """See `campaign.Progress`."""


class Rig:
    """The session, the options, and the machine, which is started when it is needed. Close it in the end.

    Raises pytest.UsageError for a name that is not known.
    """

    def __init__(self, options: Options) -> None:
        allow_large_numbers()  # counts of crash states are exact
        self.options = options
        self.support: defaultdict[str, Support] = defaultdict(Support)
        """Operations that each target supports or not, as far as the tests have shown."""
        self._machine: Spare | None = None
        self.session = Session(options.store, kernel_name=options.kernel, explainer=explanation)
        with _usage_errors():
            self._targets = self._named_targets(options.targets)
            self._properties = _properties(options.properties)
            self.expected = Expectation.named(options.expect)
            self.how = Exploration(budget=Budget.parse(options.budget))
            if self._properties and (self.expected.compares or self.expected.contract):
                raise UsageError(f"properties name who judges, and so does {options.expect}: give one of them")

    @cached_property
    def settings(self) -> MachineSettings:
        """How machines are started."""
        return settings_for_recorders(self.session.settings, [self.how.recorder])

    def cases(self, targets: str, properties: str) -> list[Case]:
        """Returns the cases of a Python test: its own targets and properties, or the targets of the options."""
        with _usage_errors():
            chosen = self._named_targets(split_targets(targets, self.options.folder)) if targets else self._targets
            return _cases(chosen, _properties(properties))

    @property
    def file_cases(self) -> list[Case]:
        """The cases of a workload file."""
        return _cases(self._targets, self._properties)

    def examine(self, plan: Plan, *, fresh: bool = False) -> Examination:
        """Examines the plan, or reads its result from the store unless `fresh`. Raises HarnessError.

        If the crash disk ends, it is tried once more with a new one.
        """
        machine = self._machine = self._machine or Spare(self.settings)
        try:
            return run_plan(plan, machine, self.session.store, Silence(), fresh=fresh)
        except CrashDiskEndedError:
            machine.close()
            return run_plan(plan, machine, self.session.store, Silence(), fresh=fresh)

    def close(self) -> None:
        """End the machine."""
        if self._machine is not None:
            self._machine.close()

    def _named_targets(self, names: tuple[str, ...]) -> tuple[Target, ...]:
        return tuple(self.session.target(name) for name in names)


@contextmanager
def failures(rig: Rig) -> Iterator[None]:
    """Turns errors of postcrash into test failures of one line."""
    try:
        yield
    except HarnessError as error:
        note = f"; {kept_evidence(rig.options.store, error)}" if error.evidence.strip() else ""
        fail(f"postcrash: {error}{note}")
    except StoreError as error:
        fail(f"postcrash: {error}")


def fail(text: str) -> NoReturn:
    """Fails the test with this text alone."""
    raise pytest.fail.Exception(text, pytrace=False) from None


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except (UsageError, UnknownPropertyError, BudgetError) as error:
        raise pytest.UsageError(f"postcrash: {error}") from None


def _properties(names: str) -> tuple[Property, ...]:
    return properties_named(names) if names else ()


def _cases(targets: tuple[Target, ...], properties: tuple[Property, ...]) -> list[Case]:
    return [Case(target, prop) for target in targets for prop in properties or (None,)]
