"""What external synchrony is to cost at most, and whether it did."""

from dataclasses import dataclass

from side_by_side import delay, postgresql, postmark, source_build, web
from side_by_side.results import Results
from side_by_side.settings import XSYNC


@dataclass(frozen=True)
class Goal:
    """A limit for a figure of xsync: for its ratio to the asynchronous file system, or for its value."""

    words: str
    figure: str
    limit: float
    is_upper: bool
    is_ratio: bool = True

    def found(self, results: Results) -> float | None:
        """What the limit is for. None if it was not measured."""
        return (results.ratio if self.is_ratio else results.median)(self.figure, XSYNC.name)

    def line(self, results: Results) -> str:
        """Whether it is met, in words."""
        found = self.found(results)
        if found is None:
            return f"{self.words}: not measured"
        is_met = found <= self.limit if self.is_upper else found >= self.limit
        return f"{self.words}: {'met' if is_met else 'not met'} ({found:.3g})"


_QUIET, _QUIET_P99 = delay.names("alone")
_BUSY, _BUSY_P99 = delay.names("beside PostMark")
GOALS = (
    Goal("PostMark takes at most 1.07 times as long as asynchronous", postmark.SECONDS, 1.07, True),
    Goal("the build takes at most 1.03 times as long as asynchronous", source_build.SECONDS, 1.03, True),
    Goal("the web mix has at least 0.92 of the throughput of asynchronous", web.THROUGHPUT, 0.92, False),
    Goal("POSTs only have at least 0.92 of the rate of asynchronous", web.POSTS, 0.92, False),
    Goal(
        "PostgreSQL with one client is at least 3 times as fast as asynchronous with its fsyncs",
        *(postgresql.per_minute(1), 3, False),
    ),
    Goal("an output waits less than 50 ms, median", _QUIET, 50, True, is_ratio=False),
    Goal("an output waits less than 50 ms, 99th percentile", _QUIET_P99, 50, True, is_ratio=False),
    Goal("an output beside PostMark waits less than 50 ms, median", _BUSY, 50, True, is_ratio=False),
    Goal("an output beside PostMark waits less than 50 ms, 99th percentile", _BUSY_P99, 50, True, is_ratio=False),
)
