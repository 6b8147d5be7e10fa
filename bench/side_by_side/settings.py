"""The file systems that are compared: how each is mounted, and whether the workload runs under xsync."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """A way to run a workload on ext4 with data=journal.

    options     mount options besides data=journal
    in_memory   the disk is a file in memory
    supervisor  options of `xsync run`; None if the workload runs without it
    """

    name: str
    options: str = ""
    in_memory: bool = False
    supervisor: tuple[str, ...] | None = None

    @property
    def mount_options(self) -> str:
        """All of them, as mount(8) takes them."""
        return f"data=journal,{self.options}".rstrip(",")


ASYNCHRONOUS = Setting("asynchronous")
XSYNC = Setting("xsync", supervisor=())
EAGER = Setting("xsync --eager", supervisor=("--eager",))
SYNCHRONOUS = Setting("synchronous", "sync,barrier=0")
BARRIERS = Setting("synchronous with barriers", "sync")
MEMORY = Setting("RAM disk", in_memory=True)
SETTINGS = (ASYNCHRONOUS, XSYNC, EAGER, SYNCHRONOUS, BARRIERS, MEMORY)
