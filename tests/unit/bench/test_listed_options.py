"""The list of mount options and features: each row is a target."""

from listed_options import listed_options


def test_each_option_is_listed_once() -> None:
    for fstype, listed in listed_options().items():
        rows = list(listed.rows(fstype))
        labels = [row.label for row in rows]
        assert len(set(labels)) == len(labels) > 60
        assert {row.target.fstype for row in rows} == {fstype}


def test_a_row_adds_to_a_target_and_knows_what_it_needs() -> None:
    rows = {row.label: row for row in listed_options()["ext4"].rows("ext4")}
    row = rows["mkfs -O encrypt, mount -o test_dummy_encryption=v1"]
    assert row.needs == ("CONFIG_FS_ENCRYPTION",)
    assert (row.target.mkfs[-2:], row.target.options) == (("-O", "encrypt"), "test_dummy_encryption=v1")
    assert rows["mount -o data=journal"].needs == ()
