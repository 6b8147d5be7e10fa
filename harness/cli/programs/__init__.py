"""Commands that judge programs on file systems."""
