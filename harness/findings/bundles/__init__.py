"""A finding as one file: how it is written, and what is taken of a file that a stranger wrote."""
