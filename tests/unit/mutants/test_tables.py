"""The tables of mutants are well formed; whether they fit the kernel's source, `make mutants` sees."""

from postcrash.targets import target_named

from ...mutants.mutant import load_mutants

SUBSYSTEMS = {"jbd2", "ext4", "btrfs", "xfs", "f2fs", "nilfs2"}


def test_each_row_is_a_change_of_its_own() -> None:
    mutants = load_mutants()
    assert len(mutants) >= 40
    assert {mutant.subsystem for mutant in mutants} == SUBSYSTEMS
    assert len({mutant.digest() for mutant in mutants}) == len(mutants)
    assert all(mutant.old != mutant.new for mutant in mutants)


def test_each_target_is_in_the_catalogue() -> None:
    for mutant in load_mutants():
        assert target_named(mutant.target).fstype.startswith(mutant.subsystem.replace("jbd2", "ext")[:3]), mutant.name


def test_each_row_says_what_breaks_in_one_sentence() -> None:
    for mutant in load_mutants():
        assert mutant.breaks.endswith("."), mutant.name
        assert "|" not in mutant.breaks + mutant.equivalent + mutant.missed, mutant.name
        assert not (mutant.equivalent and mutant.missed), mutant.name
