"""Random hunting: an endless series of long workloads, each drawn from earlier ones that brought something new.

The store keeps the drawn workloads in the order in which they were done, each with its new features. So the same
command has the same pool again, takes the results from the store, and goes on. With one guest that does not fail, a
hunt draws the same workloads in every run. With several guests, the order in which they finish matters too.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from postcrash._core import Recording
from postcrash.harness.errors import OperationFailedError
from postcrash.harness.examination.campaign import FinishedPlan, tool_digest
from postcrash.harness.hunting.hunt import Hunt, HuntContext
from postcrash.harness.hunting.novelty import features
from postcrash.model import Workload
from postcrash.store.json_codec import Json
from postcrash.workloads import Draft, Grammar, Pool

TRIES_MAX = 100
"""The most drafts that are drawn to find one workload that is new and that the file system can run."""
REFUSALS = 3
"""An operation that was refused in so many workloads is not drawn again. Fewer could be a bug that shows sometimes."""


@dataclass(frozen=True, slots=True)
class RandomSelection:
    """The random workloads of a seed, at most `limit`, each on all `disks`."""

    grammar: Grammar
    seed: int
    limit: int | None = None
    disks: tuple[int | None, ...] = (None,)

    @property
    def count(self) -> int | None:
        """How many workloads there are; None if there is no end."""
        return self.limit


class RandomHunt(Hunt[RandomSelection]):
    """Hunts with random workloads, until the limit or the time is reached."""

    def __init__(self, selection: RandomSelection, context: HuntContext) -> None:
        super().__init__(selection, context)
        self._pool = Pool(selection.grammar, selection.seed)
        self._seen: set[str] = set()
        self._new: set[int] = set()
        self._drafts: dict[int, Draft] = {}
        """All drafts so far, by their numbers."""
        self._log: list[Json] = []
        self._parts = 0
        """The number of parts of the log in the store."""

    def _not_run(self) -> int:
        limit = self._selection.limit
        return 0 if limit is None else limit - len(self._drafts) + len(self._unfinished)

    def _new_workloads(self) -> Iterator[tuple[int, Workload]]:
        texts: set[str] = set()
        for entry in list(self._logged()):  # a list, because the log grows while these workloads are run
            number, draft = entry["number"], Draft.from_json(entry["draft"])
            if len(self._drafts) == self._selection.limit or self._is_over:
                return
            self._learn(number, draft, entry["new"])
            if number not in self._drafts:
                self._drafts[number], workload = draft, self._workload(number, draft)
                texts.add(workload.to_text())
                yield number, workload
        for number in itertools.count(max(self._drafts, default=-1) + 1):
            if len(self._drafts) == self._selection.limit or self._is_over:
                return
            drawn = self._drawn(number, texts)
            if drawn is not None:
                self._drafts[number] = drawn
                yield number, self._workload(number, drawn)

    def _drawn(self, number: int, texts: set[str]) -> Draft | None:
        for attempt in range(TRIES_MAX):
            draft = self._pool.draw(number * TRIES_MAX + attempt)
            workload = draft.workload("", self._selection.grammar)
            if workload.to_text() not in texts and not self._lacks(workload):
                texts.add(workload.to_text())
                return draft
        return None

    def _lacks(self, workload: Workload) -> bool:
        """Whether the workload has an operation that the file system refused often enough."""
        words = {" ".join(filter(None, (operation.word, operation.mode))) for operation in workload.operations}
        refused = {reason for reason, count in self._hunt_result.lacking.items() if count >= REFUSALS}
        return any(reason.startswith(f"{word} fails with ") for reason in refused for word in words)

    def _workload(self, number: int, draft: Draft) -> Workload:
        return draft.workload(f"random-{self._selection.seed}-{number}", self._selection.grammar)

    def _done(self, done: FinishedPlan) -> None:
        new = set()
        if not isinstance(done.result, OperationFailedError) and done.result.recording:
            plan, recording = done.plan, Recording(done.recording)
            new = features(recording, plan.workload, done.result, plan.explainer.block_kind) - self._seen
        draft = self._drafts[done.number]
        self._learn(done.number, draft, new)
        self._log.append({"number": done.number, "draft": draft.to_json(), "new": sorted(new)})
        super()._done(done)

    def _learn(self, number: int, draft: Draft, new: Iterable[str]) -> None:
        self._seen.update(new)
        if new and number not in self._new:
            self._new.add(number)
            self._pool.add(draft)
            self._hunt_result.new += 1

    def _logged(self) -> Iterator[Json]:
        while (part := self._results.row(self._log_key())) is not None:
            self._parts += 1
            yield from part["drafts"]

    def _flush(self) -> None:
        if self._log:
            self._results.put(self._log_key(), {"drafts": self._log})
            self._parts += 1
        self._log = []
        super()._flush()

    def _log_key(self) -> str:
        """The key of the log's next part."""
        chosen = f"{self._plan.key(tool_digest())} {self._selection.grammar.name} {self._selection.seed} {self._disks}"
        chosen += f" {self._selection.grammar.setups}"
        return f"random {hashlib.sha256(chosen.encode()).hexdigest()} {self._parts}"
