"""AWS's default request rates, to compare a load with them (``stateyard load``, limits ahead).

Source: AWS's documentation of the quotas of Step Functions. They are soft limits per account and
region: an account may have higher ones, and a new account starts with lower ones.
"""

from __future__ import annotations

from typing import NamedTuple

_LARGE_REGIONS = frozenset({"us-east-1", "us-west-2", "eu-west-1"})


class AwsRate(NamedTuple):
    """A token bucket: its size, and the tokens added per second."""

    bucket: int
    refill: int


def transition_rate(region: str) -> AwsRate:
    """Return the rate of state transitions of Standard executions; Express ones have none."""
    return AwsRate(5_000, 5_000) if region in _LARGE_REGIONS else AwsRate(800, 800)


def start_rate(region: str, *, express: bool) -> AwsRate:
    """Return the rate of StartExecution."""
    if express:
        return AwsRate(6_000, 6_000)
    return AwsRate(1_300, 300) if region in _LARGE_REGIONS else AwsRate(800, 150)
