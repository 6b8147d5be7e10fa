"""What "Rethink the Sync" (OSDI'06) has measured, as multiples of its asynchronous ext3.

Where its text says "over ten times" or "over a hundred times", the number is that bound.
"""

from side_by_side import postgresql, postmark, source_build, web
from side_by_side.settings import ASYNCHRONOUS, BARRIERS, MEMORY, SYNCHRONOUS, XSYNC

RATIOS = {
    postmark.SECONDS: {ASYNCHRONOUS: 1, XSYNC: 1.07, SYNCHRONOUS: 1.07 * 10, BARRIERS: 1.07 * 100},
    source_build.SECONDS: {
        ASYNCHRONOUS: 1,
        XSYNC: 1.03,
        SYNCHRONOUS: 1.03 * 1.46,
        BARRIERS: 1.03 * 11,
        MEMORY: 1.03 * 0.92,
    },
    web.THROUGHPUT: {ASYNCHRONOUS: 1, XSYNC: 0.92, SYNCHRONOUS: 0.92 * 1.06, BARRIERS: 0.92 / 1.07},
}
"""Figures 4, 5 and 7: by figure of ours, by setting."""

BY_CLIENTS = {1: 3.0, 20: 1.22, 32: 1.0}
"""Figure 6: MySQL's orders a minute under xsyncfs, by clients, as multiples of those on ext3 with barriers."""

REQUEST_SECONDS = {
    ASYNCHRONOUS: dict(zip(web.CLASSES, (0.064, 0.150, 1.084, 10.253), strict=True)),
    XSYNC: dict(zip(web.CLASSES, (0.097, 0.180, 1.094, 10.072), strict=True)),
}
"""Figure 8."""

OVER_EAGER = {
    postmark.SECONDS: 1.14,
    source_build.SECONDS: 1.02,
    postgresql.per_minute(1): 1.35,
    postgresql.per_minute(20): 1.11,
    web.THROUGHPUT: 1.0,
}
"""Figure 9: how many times as fast output-triggered commits are as eager ones."""
