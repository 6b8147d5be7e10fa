"""A finding in a few lines, as a hunt prints it while it goes on."""

from postcrash.model import parse_workload
from postcrash.model.text import INVOCATION, visible
from postcrash.store.records import Finding


def found_text(finding: Finding, invocation: str = INVOCATION) -> str:
    """The checker with its message, the workload in one line, and the command that explains the finding."""
    workload = parse_workload(finding.workload_text, finding.workload_name).without_tail()
    text = f"{finding.checker}: {finding.message}\n{'; '.join(workload.to_text().splitlines())}"
    return f"found {visible(text)}\nexplained: {invocation} explain {finding.id}\n"
