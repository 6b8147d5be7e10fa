"""A gate: everything that must hold before a change goes in, in one file, with what is known to fail."""
