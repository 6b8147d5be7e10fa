"""One workload on several file systems in one run, side by side: the parts of `bench/xsync.py`."""
