"""How many of a program's runs may be of a kind that no recording has shown.

Runs are taken to be independent, each with a kind (`shape_of`) drawn with the same probabilities. After so many
recordings, the runs whose kinds are still unseen have a share of all runs. Let this share be u after a recording that
showed something new. Then k more recordings show nothing new with a probability of (1 - u)^k. So u is at most
1 - a^(1/k), and the risk that this is wrong is a. What was new j times, the first recording included, gave j such
chances to be wrong. So the chance after the j-th has a = RISK / (j * (j + 1)). These add up to RISK, however many there
are, and whatever decides when to stop.

On a disk that holds its completions back, kinds have other probabilities. If all disks take turns, the bound is about
the mean of their shares, because a product of factors with a given mean is largest when they are equal.
"""

from collections.abc import Sequence

RISK = 0.05
"""How likely it is, at most, that the share is larger than said."""


def unseen_share(kinds: Sequence[str]) -> float:
    """The share of runs of unseen kinds is at most this, by the kinds of the recordings in their order."""
    first = {kind: number for number, kind in reversed([*enumerate(kinds, 1)])}
    quiet = len(kinds) - max(first.values(), default=0)
    if not quiet:
        return 1.0
    return 1.0 - float((RISK / (len(first) * (len(first) + 1))) ** (1 / quiet))
