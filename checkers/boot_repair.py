"""If distributions run fsck before they mount, the boot goes on.

systemd-fsck(8) and sysvinit's checkroot.sh and checkfs.sh run `fsck -a`, whose statuses are those of fsck(8). Status 1
means that everything was corrected. Status 2 asks for a reboot, which makes no difference for a disk that is not
mounted yet. With status 4, for errors that were left, systemd enters its emergency mode and sysvinit starts a shell for
the administrator. sysvinit also does so with status 8, an error of the program.
"""

from postcrash.checkers.checker import CannotTellError, InShell, Objection, Stage
from postcrash.checkers.exit_status import why_not_repaired
from postcrash.model import History, Observation

STOPS = 4
"""The least status that ends a boot: fsck(8)."""


class Boots:
    """The program that repairs does not ask for a person."""

    name = "boots"
    statement = "The program that distributions run before they mount exits with a status below 4: the boot goes on."
    depends_on: tuple[str, ...] = ()
    looks_at: tuple[str, ...] = ("repair", "walk")
    needs: Stage = "anything"
    in_shell = InShell(
        "boot", "the repair before the mount goes well", "it asks for a person", (f'[ "$status" -ge {STOPS} ]',)
    )

    def check(self, history: History, observation: Observation) -> Objection | None:
        """Objects to a status of 4 or more. Raises `CannotTellError` if the program did not get to the end.

        What the program printed is left to the explanation, so that findings of one cause stay together in a hunt.
        """
        result = observation.repair
        if result is None:
            raise CannotTellError("nothing was run before the mount")
        if reason := why_not_repaired(result):
            raise CannotTellError(f"the program before the mount {reason}")
        if result.status < STOPS:
            return None
        return Objection(self.name, f"exit status {result.status}: the boot needs a person")

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether the program was run."""
        return observation.repair is not None


def why_boot_stops(observation: Observation) -> str:
    """Why nobody would see what was mounted after a repair. Empty if the boot goes on, or if there was no repair."""
    result = observation.repair
    if result is None:
        return ""
    if reason := why_not_repaired(result):
        return f"the program before the mount {reason}"
    return f"the boot stops at exit status {result.status} of the program before the mount" * (result.status >= STOPS)
