"""Audits: an application runs on a file system, crashes everywhere, recovers, and its check judges what is left."""
