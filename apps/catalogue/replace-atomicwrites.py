"""Replaces `settings` as the documentation of Python's package atomicwrites shows it."""

from atomicwrites import atomic_write

with atomic_write("settings", overwrite=True) as file:
    file.write("the new content\n")
print("replaced", flush=True)
