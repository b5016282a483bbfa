"""The documentation of the metrics lists the same metrics as the code's table."""

from __future__ import annotations

import re
from pathlib import Path

from console.features.metrics.names import METRICS, SEVEN, STATE_METRICS

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
_ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (\S+) \| (.+) \|$", re.MULTILINE)


def test_every_metric_is_documented() -> None:
    """Name, unit, dimension and meaning in the page are those of the code, none more or less."""
    rows = {row[0]: row[1:] for row in _ROW.findall(DOCS.read_text("utf-8"))}
    expected = {
        metric.name: (
            metric.unit,
            f"`{metric.dimension}`" if metric.dimension else "none",
            metric.meaning,
        )
        for metric in (*METRICS.values(), *STATE_METRICS.values())
    }
    assert rows == expected


def test_the_seven() -> None:
    """The first seven are those that the overview draws."""
    assert set(SEVEN) == {
        "ExecutionTime",
        "ExecutionThrottled",
        "ExecutionsAborted",
        "ExecutionsFailed",
        "ExecutionsStarted",
        "ExecutionsSucceeded",
        "ExecutionsTimedOut",
    }
