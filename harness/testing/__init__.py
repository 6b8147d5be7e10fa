"""postcrash in pytest: options, tests that are workload files, and the fixture `crash_fs`."""
