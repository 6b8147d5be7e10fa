"""Sequences the stages: guests, campaigns and the command line."""
