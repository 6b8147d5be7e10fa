"""One workload on one target: record it, recover its crash states, judge them."""
