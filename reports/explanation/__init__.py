"""Explains what a crash state lost, by request and by structure of the file system."""
