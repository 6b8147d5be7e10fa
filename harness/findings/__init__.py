"""One finding: made smaller, shown again, described."""
