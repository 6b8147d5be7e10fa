"""Chooses the kernel for commands on a finding: the build that it was found on, unless the user names another one."""

from contextlib import suppress
from dataclasses import replace

from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.engine import Qemu
from postcrash.harness.guests.kernels.build import build_of
from postcrash.harness.guests.kernels.by_content import kernels_here
from postcrash.harness.guests.kernels.copies import copies
from postcrash.harness.guests.kernels.kernel import INSTALLED, Kernel, in_virtual_time
from postcrash.store.records import Finding


def on_its_kernel(session: Session, finding: Finding) -> Session:
    """Returns the session on the kernel that the finding was found on, or on that of --kernel.

    Raises UsageError if the kernel is missing, or if --engine cannot run it.
    """
    if session.kernel_name is not None:
        return session
    with suppress(UsageError):
        session.target_of(finding)  # its modules and programs are in the guest
    kernel = session.same_kernel(finding.kernel, finding.guest, finding.built)
    if kernel is None:
        raise UsageError(f"{finding.id}: {missing_kernel_message(finding)}: name another one with --kernel")
    if session.engine not in ("auto", "qemu" if isinstance(kernel.engine, Qemu) else "uml"):
        raise UsageError(
            f"{finding.id} was found on {finding.kernel}, which --engine {session.engine} cannot run: "
            "name another one with --kernel"
        )
    if finding.built is not None:  # the copy of a file does not know what the file was called
        kernel = replace(kernel, name=kernel.name or finding.built.name)
    return session.on(in_virtual_time(kernel) if session.virtual_time else kernel)


def missing_kernel_message(finding: Finding) -> str:
    """Says which kernel the finding needs and this machine lacks."""
    if finding.built is None:
        return f"nothing says on which build of {finding.kernel} it was found"
    message = f"the kernel that it was found on is not here any more: {finding.kernel} ({finding.built.description})"
    linked = [kernel for kernel in kernels_here(cache_folder()) if _is_linked_alike(kernel, finding)]
    unnamed = copies(cache_folder())
    alike = [kernel.name or INSTALLED for kernel in linked if kernel.name or kernel.path not in unnamed]
    return f"{message}; {', '.join(alike)} has the same build id, in another file" if alike else message


def _is_linked_alike(kernel: Kernel, finding: Finding) -> bool:
    assert finding.built is not None
    return kernel.label == finding.kernel and finding.built.build_id == build_of(kernel, cache_folder()).build_id != ""


def is_same_build(finding: Finding, session: Session) -> bool:
    """Whether the session's kernel is the build that the finding was found on."""
    if finding.built is None:
        return finding.guest == session.guest()
    return finding.built.content == session.build().content


def guest_difference(finding: Finding, session: Session) -> str:
    """Says how the session's guest differs from the finding's guest; empty if it does not."""
    if finding.guest == session.guest():
        return ""
    label = session.kernel.label
    if not is_same_build(finding, session):
        build = f" ({finding.built.brief})" if finding.built else ", perhaps another build of it"
        return f"another kernel: it was found on {finding.kernel}{build}, and this is {label} ({session.build().brief})"
    if finding.kernel != label:
        return f"the same kernel run in another way: it was found on {finding.kernel}, and this is {label}"
    return "the same kernel, but other modules or programs in the guest than when it was found"
