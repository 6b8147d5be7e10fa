"""Kernels of guests: where they come from, what they have, and which targets they can run."""
