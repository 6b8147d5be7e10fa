"""The bytes that writes leave behind and that fill free space; docs/formats.md, "Bytes"."""

import string
from functools import lru_cache

TAG_MAX = 254
WORD_BYTES = 8

_CHUNK_BYTES = 512
"""Hashes are kept for chunks of this size, because the same places of files are asked for again and again."""
_MASK = (1 << 64) - 1
_DIGITS = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/").encode()


def pattern(tag: int, offset: int, length: int) -> bytes:
    """The `length` bytes that the write with `tag` (0 to 254) puts at file offset `offset`.

    At any one offset all tags give different bytes, and none of them is zero.
    """
    if not 0 <= tag <= TAG_MAX:
        raise ValueError(f"tag {tag} is not one of 0 to {TAG_MAX}")
    first, last = offset // _CHUNK_BYTES, -(-(offset + length) // _CHUNK_BYTES)
    hashes = b"".join(map(_hashes, range(first, last)))
    skipped = offset - first * _CHUNK_BYTES
    return hashes[skipped : skipped + length].translate(_table(tag))


@lru_cache(maxsize=1 << 14)
def _hashes(chunk: int) -> bytes:
    """The hashes of the words of the file's chunk of this number."""
    first, words = chunk * _CHUNK_BYTES // WORD_BYTES, _CHUNK_BYTES // WORD_BYTES
    return b"".join(splitmix64(word).to_bytes(WORD_BYTES, "little") for word in range(first, first + words))


@lru_cache(maxsize=TAG_MAX + 1)
def _table(tag: int) -> bytes:
    """What the write with `tag` makes of each byte of a hash."""
    return bytes(1 + (tag + h) % 255 for h in range(256))


def stale(block: int, length: int) -> bytes:
    """The first `length` bytes that fill the free 4 KiB block number `block` of a base image.

    Three base-64 digits hold the number modulo 2^18, which is exact in images up to 1 GiB.
    """
    word = b"stale" + bytes(_DIGITS[(block >> shift) & 63] for shift in (12, 6, 0))
    return (word * (-(-length // WORD_BYTES)))[:length]


def splitmix64(x: int) -> int:
    """One step of SplitMix64 from the state `x` (Steele, Lea and Flood, OOPSLA 2014), modulo 2^64."""
    z = (x + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
