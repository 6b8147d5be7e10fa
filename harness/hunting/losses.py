"""Headlines of findings (what is lost after which operations), and the calls to blame, by which groups are joined.

    after `rename foo bar; fsync bar`: bar is missing, foo is back

Findings of one bug come in many workloads, and the smallest of them still differ in how their files were made. What
they have in common are the calls from the one on that last changed what is wrong now.
"""

import re
from collections.abc import Sequence

from postcrash.harness.hunting.causes import names_in
from postcrash.model import Operation, Workload, parse_workload
from postcrash.model.operation import Naming
from postcrash.store.records import Finding

OPERATIONS_MAX = 5
"""The most operations that a headline shows: the last ones."""
_RETURNED = re.compile(r"\(operation [0-9]+\) (?:had returned.*?|is visible), but ")


def headline(finding: Finding) -> str:
    """One line: what is lost after which operations.

    The judge's other words, such as what it rests on, are left out, and so are operations of the set-up.
    """
    workload = _workload(finding)
    return f"{_when(workload, finding.started, finding.returned)}: {_loss(finding.message)}"


def calls_to_blame(finding: Finding) -> tuple[str, ...]:
    """The words of the operations from the one on that last changed a file that the message names.

    Operations that only make, open or close files are left out, unless no other has changed such a file.
    """
    operations = _workload(finding).without_tail().operations[: finding.started]
    changes = [number for number, each in enumerate(operations) if each.form.changes_tree]
    named = {match[0] for match in names_in(_loss(finding.message), operations)}
    last = [number for path in named for number in _last_change(operations, changes, path)]
    first = min(last, default=0)
    words = [_word(each) for each in operations[first:] if not _only_prepares(each)]
    if operations and _only_prepares(operations[first]):
        words.insert(0, _word(operations[first]))
    return tuple(word for number, word in enumerate(words) if number == 0 or word != words[number - 1])


def _workload(finding: Finding) -> Workload:
    return parse_workload(finding.workload_text, finding.workload_name)


def _when(workload: Workload, started: int, returned: int) -> str:
    done = [str(each) for each in workload.operations[len(workload.setup) : started]]
    shown = ["…", *done[-OPERATIONS_MAX:]] if len(done) > OPERATIONS_MAX else done
    if not shown:
        return "after the set-up"
    if returned >= started:
        return f"after `{'; '.join(shown)}`"
    before = f", after `{'; '.join(shown[:-1])}`" if shown[:-1] else ""
    return f"in `{shown[-1]}`{before}"


def _loss(message: str) -> str:
    """What is wrong, without the operations by which the judge knows that it is."""
    return message[match.end() :] if (match := _RETURNED.search(message)) else message


def _last_change(operations: Sequence[Operation], changes: Sequence[int], path: str) -> list[int]:
    """The number of the operation that last changed what `path` names, or a folder that it is in; empty if none did."""
    about = [number for number in changes if any(_is_within(path, each) for each in operations[number].paths)]
    return ([number for number in about if not _only_prepares(operations[number])] or about)[-1:]


def _is_within(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/")


def _only_prepares(operation: Operation) -> bool:
    return operation.form.naming is Naming.MAKE or operation.form.opens or operation.word == "close"


def _word(operation: Operation) -> str:
    return " ".join(filter(None, (operation.word, operation.mode)))
