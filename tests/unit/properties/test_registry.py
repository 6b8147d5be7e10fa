"""All properties: each is sound, and the recorder can afford each family."""

import pytest

from postcrash.model import parse_workload, simulate
from postcrash.model.history import trees_of
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES
from postcrash.properties import (
    GROUPS,
    HOTDEP13,
    PROPERTIES,
    TORN_BLOCKS,
    Property,
    UnknownPropertyError,
    properties_named,
    property_named,
)
from postcrash.properties.kinds import Atomic
from postcrash.properties.selection import WRITING, is_within

from .conformance import check_property

ALL = pytest.mark.parametrize("checked", PROPERTIES, ids=lambda checked: checked.name)


@ALL
def test_each_property_conforms(checked: Property) -> None:
    check_property(checked)


@ALL
def test_each_workload_survives_being_written_and_read(checked: Property) -> None:
    for workload in checked.workloads():
        assert parse_workload(workload.to_text(), workload.name) == workload
        assert len(simulate(workload.with_tail())) == len(workload.with_tail().operations) + 1


@ALL
def test_names_of_workloads_start_with_the_property(checked: Property) -> None:
    prefix = checked.name.partition("-")[0].lower() + "-"
    assert all(workload.name.startswith(prefix) for workload in checked.workloads())


@pytest.mark.parametrize(
    ("group", "most"),
    [("hotdep13", 60), ("osdi14", 170), ("sqlite", 70), ("atomicity", 110), ("ordering", 95), ("durability", 96)],
)
def test_all_families_of_a_group_together_are_small(group: str, most: int) -> None:
    assert len({workload for checked in GROUPS[group] for workload in checked.workloads()}) <= most


def test_a_workload_has_one_name_and_a_name_one_workload() -> None:
    workloads = {workload for checked in PROPERTIES for workload in checked.workloads()}
    assert len({workload.name for workload in workloads}) == len(workloads)


def test_names_are_unique_and_groups_are_none_of_them() -> None:
    names = [checked.name.casefold() for checked in PROPERTIES]
    assert len(set(names)) == len(names)
    assert set(names).isdisjoint({*GROUPS, "all"})


def writes_within(checked: Property, unit_bytes: int) -> bool:
    """Whether it is about the atomicity of writes, each of which lies in one unit."""
    return isinstance(checked, Atomic) and all(
        workload.operations[index].word in WRITING
        and is_within(unit_bytes)(workload.operations[index], trees_of(workload)[index])
        for workload in checked.workloads()
        for index, *_ in checked.selected(workload)
    )


def test_properties_about_a_block_are_known() -> None:
    """A sector never tears, so that a property about sectors is none of them."""
    about_blocks = {checked.name for checked in PROPERTIES if writes_within(checked, BLOCK_BYTES)}
    assert (
        about_blocks - {checked.name for checked in PROPERTIES if writes_within(checked, SECTOR_BYTES)} == TORN_BLOCKS
    )


def test_properties_are_chosen_by_name_and_group() -> None:
    assert properties_named("all") == PROPERTIES
    assert properties_named("hotdep13") == HOTDEP13
    assert [checked.name for checked in properties_named("p5, SQLite,S-atomic")][:2] == ["P5", "S-safe-append"]
    assert len(properties_named("P1,hotdep13,P1")) == len(HOTDEP13)
    with pytest.raises(UnknownPropertyError, match=r"no property is called 'osdi': .*; and the groups all, hotdep13"):
        properties_named("P1,osdi")


def test_properties_are_found_by_name() -> None:
    assert [property_named(checked.name) for checked in PROPERTIES] == list(PROPERTIES)
    assert property_named("p2-NULL").name == "P2-null"
    with pytest.raises(UnknownPropertyError, match="no property is called 'P6': there are P1, P2, P2-null"):
        property_named("P6")
