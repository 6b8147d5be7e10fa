"""Describes the coverage of certificates and examinations in words."""

import re
from decimal import Decimal

from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.result import Examination
from postcrash.harness.files.output import count_text
from postcrash.harness.guests.events import IntervalReport

_EXACT_MAX = 10**12
"""Larger numbers are rounded."""
_LEFT_OUT = re.compile(
    r"(?:within the recovery of \S+: )?crash interval \d+: \S+ of \S+ crash states(?:: [^;]*)?; (?P<why>.+)"
)
"""The text of `coverage` for a partly covered interval, with the examiner's prefix."""


def coverage(certificate: Certificate | IntervalReport) -> str:
    """For example `crash interval 3: 9 of 2^80 crash states: all within 1 deviation of everything kept, …`."""
    name = f"crash interval {certificate.index}"
    counts = f"{_number(certificate.covered)} of {_number(certificate.states)} crash states"
    reached, left_out = certificate.reached, certificate.left_out
    if left_out is None:
        return f"{name}: {counts}"
    parts = []
    if reached is not None:
        for kept, bound in (("everything", reached.all_kept), ("nothing", reached.none_kept)):
            if bound is not None:
                parts.append(f"all within {bound} deviation{'s' * (bound != 1)} of {kept} kept")
        if reached.samples:
            random = f"{reached.samples:,} random one{'s' * (reached.samples != 1)}"
            parts.append(f"{random} (seed {reached.seed})")
    return f"{name}: {counts}{': ' * bool(parts)}{', '.join(parts)}; {left_out}"


def why_left_out(reason: str) -> str | None:
    """Why crash states were left out, if `reason` is a text of `coverage`; otherwise None."""
    match = _LEFT_OUT.fullmatch(reason)
    return None if match is None else match["why"]


def common_reason(reason: str) -> str:
    """`reason` without the crash interval and its counts, so that it is equal for many workloads."""
    why = why_left_out(reason)
    return reason if why is None else f"crash states were left out: {why}"


def states_text(examination: Examination) -> str:
    """For example `9 of 431 crash states at 22 instants`."""
    states = f"{count_text(examination.covered)} of {count_text(examination.states)} crash states"
    return f"{states} at {examination.instants} instant{'s' * (examination.instants != 1)}"


def within_text(examination: Examination) -> str:
    """For example `9 of 431 within their recovery`."""
    covered, all_states = count_text(examination.covered_within), count_text(examination.states_within)
    return f"{covered} of {all_states} within their recovery"


def _number(number: int) -> str:
    if number <= _EXACT_MAX:
        return f"{number:,}"
    if number.bit_count() == 1:
        return f"2^{number.bit_length() - 1}"
    return f"{Decimal(number):.2e}"
