"""Commands that judge file systems."""
