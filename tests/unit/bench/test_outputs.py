"""What is read from the output of pgbench and wrk."""

import pytest

from side_by_side import postgresql, web
from side_by_side.site import WorkloadError

PGBENCH = """clients 1
pgbench (15.18 (Debian 15.18-0+deb12u1))
number of clients: 1
latency average = 1.225 ms
tps = 816.5 (without initial connection time)
clients 20
number of clients: 20
tps = 1000.0 (without initial connection time)
"""
WRK = """Running 3s test @ http://10.111.77.2:8080/post
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     4.39ms    2.55ms  35.39ms   84.61%
  Latency Distribution
     50%    3.69ms
     99%   12.66ms
  34800 requests in 3.01s, 5.31MB read
Requests/sec:  11576.25
"""


def test_each_number_of_clients_has_its_rate() -> None:
    assert postgresql.figures_of(PGBENCH) == {postgresql.per_minute(1): 48990, postgresql.per_minute(20): 60000}


def test_a_load_that_fails_has_no_rate() -> None:
    assert postgresql.figures_of("clients 1\npgbench: error: connection failed\n") == {}


@pytest.mark.parametrize(("shown", "ms"), [("12.66ms", 12.66), ("910.00us", 0.91), ("1.08s", 1080)])
def test_rate_and_percentile_of_posts(shown: str, ms: float) -> None:
    figures = web.figures_of(WRK.replace("12.66ms", shown))
    assert figures == {web.POSTS: 11576.25, web.POSTS_P99: pytest.approx(ms)}


@pytest.mark.parametrize("wrong", ["  Non-2xx or 3xx responses: 7", "  Socket errors: connect 0, read 50"])
def test_posts_that_fail_are_no_measurement(wrong: str) -> None:
    with pytest.raises(WorkloadError):
        web.figures_of(WRK + wrong)


def test_an_output_without_a_rate_is_no_measurement() -> None:
    with pytest.raises(WorkloadError):
        web.figures_of("unable to connect")
