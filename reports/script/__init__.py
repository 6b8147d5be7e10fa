"""Writes a finding as a mail with a shell script."""
