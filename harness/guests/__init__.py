"""Guests: kernels, engines, root folders, and the machine that drives one."""
