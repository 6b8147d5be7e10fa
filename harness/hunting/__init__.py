"""Many workloads, and their findings by cause."""
