"""Findings, results and recordings on disk."""
