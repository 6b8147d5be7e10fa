"""Properties by targets, and those by kernels."""
