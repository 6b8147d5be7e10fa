"""A mutant's kernel has what Debian's has built in, and what the fragment asks for."""

from ...mutants.source import lost_options, merged

DEBIAN = "# CONFIG_DEBUG is not set\nCONFIG_BLOCK=y\nCONFIG_NET=y\nCONFIG_LOOP=m\nCONFIG_DEBUG_INFO_DWARF5=y\n"
FRAGMENT = "# Why.\n# CONFIG_NET is not set\nCONFIG_DM=y\n"


def test_modules_and_what_the_fragment_decides_are_left_out() -> None:
    assert merged(DEBIAN, FRAGMENT) == f"CONFIG_BLOCK=y\n{FRAGMENT}"


def test_what_the_kernel_did_not_take_is_named() -> None:
    assert lost_options(FRAGMENT, "CONFIG_BLOCK=y\n") == ["CONFIG_DM=y"]
    assert lost_options(FRAGMENT, "CONFIG_DM=y\n") == []
