"""Findings, results, recordings and consoles on disk: what the engine writes and reports read.

Reading order: `records` (a finding), `store` (the database and its files), `gate_run` (the result of a gate).
"""
