"""Sizes of ranges keep the relations that make their words true."""

from postcrash.model.argument import SHIFTS
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES
from postcrash.workloads import sizes


def test_sizes_are_aligned_or_not_as_their_names_say() -> None:
    """Shared, taken out and put in are whole blocks only, and a cut that ends with a block would tear nothing."""
    whole = (sizes.APPEND_BYTES, sizes.OVERLAP_BYTES, sizes.HOLE_BYTES, sizes.MSYNC_BYTES, sizes.LOGGED_BYTES)
    assert [size % BLOCK_BYTES for size in whole] == [0] * len(whole)
    torn = (sizes.UNALIGNED_BYTES, sizes.CUT_BYTES, sizes.BEHIND_BYTES, sizes.INSIDE_BYTES)
    assert all(size % SECTOR_BYTES for size in torn)


def test_what_is_added_behind_a_cut_stays_in_its_block() -> None:
    """A file that ends inside of a block is written on in this block: after a cut, a tail, or both with a log."""
    ends = {sizes.CUT_BYTES, sizes.APPEND_BYTES + sizes.CUT_BYTES, sizes.LOGGED_BYTES + sizes.CUT_BYTES}
    assert all(end // BLOCK_BYTES == (end + sizes.INSIDE_BYTES - 1) // BLOCK_BYTES for end in ends)
    assert all(end % BLOCK_BYTES for end in ends)


def test_a_range_that_extends_a_file_begins_in_it_and_ends_behind_it() -> None:
    assert 0 < sizes.BEHIND_BYTES < sizes.UNALIGNED_BYTES
    assert sizes.BEHIND_BYTES < sizes.APPEND_BYTES


def test_ranges_from_the_start_lie_in_a_filled_file() -> None:
    assert all(0 < length <= sizes.APPEND_BYTES for length in sizes.FROM_THE_START.values())
    assert sizes.FROM_THE_START["sector"] < sizes.FROM_THE_START["block"] < sizes.FROM_THE_START["overlap"]
    assert sizes.OVERLAP_BYTES < sizes.APPEND_BYTES


def test_modes_that_move_bytes_are_those_of_the_language() -> None:
    assert set(sizes.SPLICES) == set(SHIFTS)
    assert sizes.SPLICES["collapse-range"] == -sizes.SPLICES["insert-range"] == -1
