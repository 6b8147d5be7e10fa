"""If distributions run fsck before they mount, the boot goes on.

systemd-fsck(8) and sysvinit's checkroot.sh and checkfs.sh run `fsck -a`, whose statuses are those of fsck(8). Status 1
means that everything was corrected. Status 2 asks for a reboot, which makes no difference for a disk that is not
mounted yet. With status 4, for errors that were left, systemd enters its emergency mode and sysvinit starts a shell for
the administrator. sysvinit also does so with status 8, an error of the program.
"""

from postcrash.checkers.checker import Checker, InShell
from postcrash.model import History, Observation
from postcrash.model.exit_status import BOOT_STOPS, why_not_repaired
from postcrash.model.judge import CannotTellError, Opinion, Stage, holds, violated


class BootRepair(Checker):
    """The program that repairs does not ask for a person."""

    name = "boots"
    statement = "The program that distributions run before they mount exits with a status below 4: the boot goes on."
    depends_on: tuple[str, ...] = ()
    looks_at: tuple[str, ...] = ("repair", "walk")
    needs: Stage = "anything"
    in_shell = InShell(
        "boot", "the repair before the mount goes well", "it asks for a person", (f'[ "$status" -ge {BOOT_STOPS} ]',)
    )

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Violated by a status of 4 or more. Raises `CannotTellError` if the program did not get to the end.

        What the program printed is left to the explanation, so that findings of one cause stay together in a hunt.
        """
        result = observation.repair
        if result is None:
            raise CannotTellError("nothing was run before the mount")
        if reason := why_not_repaired(result):
            raise CannotTellError(f"the program before the mount {reason}")
        if result.status < BOOT_STOPS:
            return holds()
        return violated(f"exit status {result.status}: the boot needs a person")
