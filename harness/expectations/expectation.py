"""What a file system is expected to do: the levels of `--expect`."""

from dataclasses import dataclass

from postcrash._core import DeviceModel
from postcrash.checkers import CHECKERS, PRACTICE
from postcrash.harness.errors import UsageError
from postcrash.harness.expectations.contract import Contract
from postcrash.model import Persistence, Verdict
from postcrash.model.judge import Judge
from postcrash.properties import PROPERTIES, TORN_BLOCKS, Property, property_named
from postcrash.properties.kinds import Durable
from postcrash.properties.promises import practice_of, standing_text, statements_of
from postcrash.targets import Target

DOCUMENTS, PRACTISED, CONTRACT = "documents", "practice", "contract"
KERNEL, TARGET = "kernel", "target"
LEVELS = {
    DOCUMENTS: "what manual pages and the kernel's documentation promise",
    PRACTISED: "also what developers of Linux's file systems hold each other to in fstests",
    f"{CONTRACT}:FILE": "also the properties that held where `characterize --contract FILE` measured them",
    f"{KERNEL}:NAME": "instead, that every outcome is one that the kernel NAME shows too",
    f"{TARGET}:NAME": "the same for another target, such as other mount options, on the same kernel",
}


_OF_UNTORN = "A-untorn"


@dataclass(frozen=True)
class Expectation:
    """A level, with the `name` by which it was asked for.

    contract   the properties that the level contract:FILE adds
    compared   the only judge of the levels kernel:NAME and target:NAME, which compares
    """

    name: str
    contract: Contract | None = None
    compared: Judge | None = None

    @property
    def compares(self) -> bool:
        """Whether the level needs a reference (see `reference.py`)."""
        return self.name.partition(":")[0] in (KERNEL, TARGET)

    @staticmethod
    def named(name: str) -> "Expectation":
        """The level that the command line calls `name`. Raises UsageError."""
        level, _, value = name.partition(":")
        if level == CONTRACT and value:
            return Expectation(name, Contract.load(value))
        if level in (KERNEL, TARGET) and value:
            return Expectation(name)
        if name not in (DOCUMENTS, PRACTISED):
            raise UsageError(f"{name!r} is no expectation: choose one of {', '.join(LEVELS)}")
        return Expectation(name)

    def judges(self, target: Target, model: str) -> tuple[Judge, ...]:
        """All judges. A checker of practice is among them only if a rule says that `target` is held to it.

        Raises UsageError if a contract is not about the target.
        """
        if self.compares:
            assert self.compared is not None, "the reference is opened first"
            return (self.compared,)
        practice = () if self.name == DOCUMENTS else PRACTICE
        held_to = (checker for checker in practice if practice_of(target, model, checker.name))
        properties = dict.fromkeys((*_documented(target, model), *self._by_contract(target, model)))
        return (*CHECKERS, *held_to, *properties)

    def _by_contract(self, target: Target, model: str) -> tuple[Property, ...]:
        if self.contract is None:
            return ()
        held = self.contract.of_target(target.name, model, self._file)
        return tuple(map(property_named, held))

    @property
    def _file(self) -> str:
        return self.name.partition(":")[2]

    def standing(self, target: Target, model: str, judge: str, verdict: Verdict) -> str:
        """What a verdict means for promises and practice, with the rule; empty if undecided."""
        if verdict is Verdict.UNDECIDED or self.compares:
            return ""
        kept = "kept" if verdict is Verdict.HOLDS else "broken"
        if held_to := practice_of(target, model, judge):
            return f"{kept} in practice: {held_to.rule} ({held_to.source})"
        about = statements_of(target, model, judge)
        if self.contract is not None and about.promise is None and judge in self.contract.held.get(target.name, {}):
            held = self.contract.held[target.name][judge]
            rests_on = f"{held.states} crash states of {held.workloads} workloads"
            return f"{kept}: {self._file} ({judge} held on {self.contract.kernel}, in {rests_on})"
        return standing_text(about, verdict)


def _documented(target: Target, model: str) -> tuple[Property, ...]:
    """The properties that documents promise for `target`, except those that other judges ask or that cannot fail here.

    The checker `durability`, which knows no mount options, asks what a call makes durable, and `untorn` what RWF_ATOMIC
    promises. Torn blocks are a question only on a device that tears blocks.
    """
    promised = (each for each in PROPERTIES if statements_of(target, model, each.name).promise)
    left_out = {_OF_UNTORN} if DeviceModel(model).tears_blocks else {_OF_UNTORN, *TORN_BLOCKS}
    return tuple(each for each in promised if not _is_for_durability(each) and each.name not in left_out)


def _is_for_durability(prop: Property) -> bool:
    return isinstance(prop, Durable) and (bool(prop.barriers) or _is_by_open_flag(prop))


def _is_by_open_flag(prop: Durable) -> bool:
    """Whether its operations are durable when they return because of how the file was opened, as with O_SYNC."""
    selected = ((workload, group) for workload in prop.workloads() for group in prop.selected(workload))
    return all(workload.operations[group[-1]].form.persistence is Persistence.OWN for workload, group in selected)
