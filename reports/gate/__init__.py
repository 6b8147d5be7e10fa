"""The result of a gate, and the forms in which other programs and people read it."""
