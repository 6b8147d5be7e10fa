"""The files of an aged image: how large they are, and where the figure is used."""

from postcrash.model.units import BLOCK_BYTES
from postcrash.targets import ROUNDS, AgedFiles, target_named


def test_files_are_made_of_whole_appends() -> None:
    for mib in (1, 7, 19, 200):
        aged = AgedFiles.of(mib)
        assert aged.bytes % (ROUNDS * BLOCK_BYTES) == 0
        assert 0 < aged.files * aged.bytes <= mib << 20


def test_recoveries_are_told_of_them_where_there_are_some() -> None:
    full, fresh = (target_named(name).recovery(walk=True, fsck=False) for name in ("ext4-full", "ext4-current"))
    assert full.to_wire()["aged"] == {"files": 48, "removed_every": 6, "bytes": 409_600}
    assert "aged" not in fresh.to_wire()
