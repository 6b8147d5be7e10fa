"""Tables and pages of verdicts."""
