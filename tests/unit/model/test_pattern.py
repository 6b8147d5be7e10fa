"""The bytes of writes and of free space."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import pattern, splitmix64, stale


def test_splitmix64_gives_the_published_sequence() -> None:
    """First outputs of SplitMix64 seeded with 0 (its state grows by the golden gamma each time)."""
    gamma = 0x9E3779B97F4A7C15
    outputs = [splitmix64(gamma * i % 2**64) for i in range(3)]
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@given(st.integers(0, 254), st.integers(0, 1 << 30), st.integers(0, 100))
def test_pattern_is_its_definition(tag: int, offset: int, length: int) -> None:
    def byte(o: int) -> int:
        return 1 + (tag + (splitmix64(o // 8) >> (8 * (o % 8)) & 0xFF)) % 255

    assert pattern(tag, offset, length) == bytes(byte(o) for o in range(offset, offset + length))


@pytest.mark.parametrize("offset", range(0, 64, 7))
def test_all_tags_differ_and_none_is_zero(offset: int) -> None:
    found = {pattern(tag, offset, 1)[0] for tag in range(255)}
    assert found == set(range(1, 256))


def test_known_bytes() -> None:
    """The bytes are pinned, because the agent and recordings depend on them."""
    assert pattern(0, 0, 8).hex() == "b0ce1e7c3aa921e3"
    assert pattern(7, 3, 3) == pattern(7, 0, 8)[3:6]


@pytest.mark.parametrize("tag", [-1, 255])
def test_tags_are_bounded(tag: int) -> None:
    with pytest.raises(ValueError, match="0 to 254"):
        pattern(tag, 0, 1)


@pytest.mark.parametrize(
    ("block", "word"),
    [(0, b"staleAAA"), (1, b"staleAAB"), (63, b"staleAA/"), (64, b"staleABA"), (77, b"staleABN"), (2**18, b"staleAAA")],
)
def test_stale(block: int, word: bytes) -> None:
    assert stale(block, 4096) == word * 512
    assert stale(block, 11) == word + word[:3]
    assert stale(block, 0) == b""
