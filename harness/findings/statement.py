"""The expectation of a finding's judge in prose."""

from postcrash.checkers import CHECKERS, PRACTICE
from postcrash.properties import PROPERTIES
from postcrash.store.records import Finding


def statement_of(finding: Finding) -> str:
    """Returns the expectation of the finding's judge in a sentence."""
    if finding.reference_name:
        return f"Every state that a crash leaves is one that it can leave on {finding.reference_name}, too."
    statements = {checker.name: checker.statement for checker in (*CHECKERS, *PRACTICE)}
    statements |= {prop.name: prop.statement for prop in PROPERTIES}
    return statements.get(finding.checker, "Recovery comes to an end, and to the same one after a crash within it.")
