"""Features of a workload's run and recoveries. New features guide random hunts."""

from collections import defaultdict
from collections.abc import Callable
from itertools import groupby

from postcrash._core import Recording
from postcrash.harness.examination.result import Examination
from postcrash.harness.hunting.causes import without_numbers
from postcrash.model import Workload
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES
from postcrash.recorders.events import FlushEvent, StartEvent, WriteEvent, ZeroEvent, recording_events

REQUESTS_MAX = 8
"""The most requests of one operation that are compared."""
LOOSE = "loose"
"""A part of a file whose source is open: it depends on what the crash lost."""


def features(
    recording: Recording, workload: Workload, result: Examination, block_kind: Callable[[bytes, Workload], str]
) -> set[str]:
    """The kinds of requests of each operation, the shapes of what was recovered, and orders of magnitude of counts.

    `block_kind` is as in `Explainer`.
    """
    sizes = {f"{name} 2^{getattr(result, name).bit_length()}" for name in ("intervals", "outcomes", "states")}
    return {*sizes, *_requests(recording, workload, block_kind), *_shapes(result)}


def _requests(recording: Recording, workload: Workload, block_kind: Callable[[bytes, Workload], str]) -> set[str]:
    """For each operation and the one before it, the requests that came from its start to the start of the next one."""
    seen: dict[int, list[str]] = defaultdict(list)
    current = -1
    for number, event in enumerate(recording_events(recording)):
        if isinstance(event, StartEvent):
            current = event.operation
        elif isinstance(event, WriteEvent):
            what = without_numbers(block_kind(recording.data(number)[:SECTOR_BYTES], workload))
            seen[current].append(f"{what}{' FUA' * event.fua}{' PREFLUSH' * event.preflush}")
        elif isinstance(event, FlushEvent | ZeroEvent):
            seen[current].append(event.kind)
    words = ["", *(operation.word for operation in workload.operations)]
    return {
        f"{words[number]} {words[number + 1]}: {', '.join([what for what, _ in groupby(requests)][:REQUESTS_MAX])}"
        for number, requests in seen.items()
        if number >= len(workload.setup)
    }


def _shapes(result: Examination) -> set[str]:
    """Whether the disk mounted, what the kernel said, and the type, links and kinds of contents of each entry."""
    shapes = set()
    for certificate in result.certificates:
        for outcome in certificate.outcomes:
            observation = outcome.observation
            if observation is None:
                shapes.add("lost guest")
                continue
            shapes.add(f"mount {observation['mount_errno']}")
            shapes.update(without_numbers(line) for line in observation["klog"] or ())
            shapes.update(map(_shape, observation["tree"] or ()))
    return shapes


def _shape(entry: dict[str, object]) -> str:
    segments = entry.get("segments") or ()
    assert isinstance(segments, list | tuple)
    sources = (str(segment[2]) if isinstance(segment, list) else LOOSE for segment in segments)
    kinds = [kind for kind, _ in groupby(source.partition(":")[0] for source in sources)]
    size = entry.get("size")
    is_whole = isinstance(size, int) and size % BLOCK_BYTES == 0
    return f"{entry['type']} {entry.get('nlink')} {is_whole} {' '.join(kinds[:REQUESTS_MAX])}"
