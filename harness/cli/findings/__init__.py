"""Commands that take a finding."""
