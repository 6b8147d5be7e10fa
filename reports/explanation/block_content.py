"""Describes a written block in words: bytes of the workload, or a file system's structure with a magic number.

A block is the workload's if every byte of it is zero or comes from one of the workload's writes, and if it has eight
aligned bytes of one write. A structure is recognised if its magic number is in the right place and the bytes that
follow are plausible. No checksum is computed. Copies of blocks in a journal read like the blocks themselves.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

from postcrash.model import Workload, pattern, simulate
from postcrash.model.pattern import WORD_BYTES
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES
from postcrash.reports.explanation.block_part import PARTS_MAX
from postcrash.reports.explanation.block_structure import METADATA, continues, structure

INDEXED_SECTORS_MAX = 1 << 14
"""Sectors of workload bytes (8 MiB) that are recognised. Bytes that a longer workload writes later are not."""

_PROBED_WORDS = (0, 21, 42, 63)
"""Words probed in each sector: enough that a write of a few hundred bytes contains one."""
_ZEROS = -1


class _Run(NamedTuple):
    """Bytes from `start` up to `end` of a file; `operation` wrote them (from 0, or `_ZEROS`)."""

    operation: int
    start: int
    end: int


class _Write(NamedTuple):
    """An operation that writes bytes, and where they start and end in its file."""

    operation: int
    tag: int
    start: int
    end: int


def describe(data: bytes, workload: Workload) -> str:
    """Describes `data`, written by one request while `workload` ran, for example "`append a 4096` (bytes 0 to 4096)".

    Offsets are offsets in the file. The end is not included. Raises `SimulationError` if the workload cannot succeed.
    """
    blocks = (data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES))
    found = [_workload_runs(block, workload) or structure(block) for block in blocks]
    parts: list[str] = []
    for is_named, group in groupby(found, key=lambda block: isinstance(block, str)):
        if is_named:
            parts += _counted([str(name) for name in group])
        else:
            runs = _joined(run for block in group if not isinstance(block, str) for run in block)
            parts += [_description(run, workload) for run in runs]
    more = [f"{len(parts) - PARTS_MAX} more"] if len(parts) > PARTS_MAX else []
    return ", ".join([*parts[:PARTS_MAX], *more])


def written_by(data: bytes, workload: Workload) -> set[int]:
    """Returns the operations (from 0) with bytes in `data`. Raises `SimulationError` if the workload cannot succeed."""
    blocks = (data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES))
    return {run.operation for block in blocks for run in _workload_runs(block, workload)} - {_ZEROS}


def _counted(names: list[str]) -> Iterator[str]:
    shown = [name for i, name in enumerate(names) if not (name == METADATA and _is_in_structure(names, i))]
    for name, same in groupby(shown):
        count = len(list(same))
        yield f"{name} ({count} blocks)" if count > 1 else name


def _is_in_structure(names: list[str], position: int) -> bool:
    before = (name for name in reversed(names[:position]) if name != METADATA)
    return continues(next(before, METADATA))


def _description(run: _Run, workload: Workload) -> str:
    if run.operation == _ZEROS:
        return "zeros"
    return f"`{workload.operations[run.operation]}` (bytes {run.start} to {run.end})"


def _joined(runs: Iterable[_Run]) -> list[_Run]:
    joined: list[_Run] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last is not None and last.operation == run.operation and (run.operation == _ZEROS or last.end == run.start):
            run = _Run(run.operation, joined.pop().start, run.end)
        joined.append(run)
    return joined


# Bytes of the workload. At one file offset the bytes of all tags differ, so a byte at a known offset names its write.
# The differences between neighbouring bytes of one write depend only on the offset, so they give the offset.


def _workload_runs(block: bytes, workload: Workload) -> list[_Run]:
    """Returns the runs that make up `block`, or none if it has other bytes."""
    if not any(block):
        return [_Run(_ZEROS, 0, len(block))]
    offsets = _offsets(workload)
    for at in range(0, len(block), SECTOR_BYTES):
        for word in _PROBED_WORDS:
            position = at + word * WORD_BYTES
            offset = offsets.get(_differences(block[position : position + WORD_BYTES]))
            if offset is not None and offset >= position:
                return _decoded(block, offset - position, workload)
    return []


def _differences(word: bytes) -> bytes:
    """The differences of neighbouring bytes, modulo 255. They are equal for all tags (`1 + (tag + hash) mod 255`)."""
    return bytes((after - before) % 255 for before, after in pairwise(word))


def _decoded(block: bytes, offset: int, workload: Workload) -> list[_Run]:
    """Decodes `block` as bytes at `offset` of a file. Empty if a byte is neither zero nor of a write to that place."""
    sources: list[int | None] = [None if byte else _ZEROS for byte in block]
    for write in _writes(workload):
        start, end = max(write.start, offset), min(write.end, offset + len(block))
        expected = pattern(write.tag, start, end - start) if start < end else b""
        position = start - offset
        if expected and block[position : position + len(expected)] == expected:
            sources[position : position + len(expected)] = [write.operation] * len(expected)
            continue
        for i, byte in enumerate(expected, position):
            if block[i] == byte:
                sources[i] = write.operation
    runs: list[_Run] = []
    for source, group in groupby(sources):
        if source is None:
            return []
        end = offset + sum(1 for _ in group)
        runs.append(_Run(source, offset, end))
        offset = end
    return runs


@lru_cache(maxsize=64)
def _writes(workload: Workload) -> tuple[_Write, ...]:
    if workload.runs_programs:
        return ()  # what programs write carries no tag
    trees = simulate(workload)
    found = []
    for index, operation in enumerate(workload.operations):
        if operation.tag is not None and operation.length is not None:
            start = trees[index][operation.path].size if operation.offset is None else operation.offset
            found.append(_Write(index, operation.tag, start, start + operation.length))
    return tuple(found)


@lru_cache(maxsize=64)
def _offsets(workload: Workload) -> dict[bytes, int]:
    """The file offset of a word by the differences of its bytes, for the probed words of everything that is written."""
    sectors = {
        sector
        for write in _writes(workload)
        for sector in range(write.start // SECTOR_BYTES, -(-write.end // SECTOR_BYTES))[:INDEXED_SECTORS_MAX]
    }
    offsets: dict[bytes, int] = {}
    for sector in sorted(sectors)[:INDEXED_SECTORS_MAX]:
        for word in _PROBED_WORDS:
            offset = sector * SECTOR_BYTES + word * WORD_BYTES
            offsets[_differences(pattern(0, offset, WORD_BYTES))] = offset
    return offsets
