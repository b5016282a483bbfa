"""The rules of Prometheus and the dashboard of Grafana name metrics that the server has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import promql_parser
import pytest
import yaml

from console.features.metrics.names import METRICS, STATE_METRICS
from console.features.metrics.openmetrics import prometheus_name
from tests.test_documentation import _anchors

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PROMETHEUS = ROOT / "deploy/prometheus"
RULES = yaml.safe_load((PROMETHEUS / "stateyard.rules.yml").read_text(encoding="utf-8"))
ALERTS: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((ROOT / "deploy/grafana/stateyard.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
OF_PROMETHEUS = {"up"}
"""Metrics that Prometheus makes itself."""
OF_LIBRARY = {
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
}
"""Metrics of the process, from the library of Prometheus."""
PROMTOOL = shutil.which("promtool")


def expressions() -> Iterator[tuple[str, str]]:
    """Yield the place and text of each query."""
    for alert in ALERTS:
        yield alert["alert"], alert["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "5m").replace("$job", ".*")
            yield panel["title"], query


def selectors(node: Any) -> Iterator[Any]:
    """Yield the selectors of a parsed query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
        child = getattr(node, name, None)
        if child is not None:
            yield from selectors(child)
    for child in getattr(node, "args", None) or ():
        yield from selectors(child)


@pytest.fixture(scope="module")
def metrics() -> set[str]:
    """Return each name that a sample of a scrape may have."""
    page = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
    kinds = dict(re.findall(r"^\| `(stateyard_\w+)` \| (\w+) \|", page, re.MULTILINE))
    for metric in (*METRICS.values(), *STATE_METRICS.values()):
        name = prometheus_name(metric)
        if metric.group == "gauges":
            kinds[name] = "gauge"
        elif metric.unit == "Count":
            kinds[f"{name}_total"] = "counter"
        else:
            kinds[name] = "histogram"
    parts = {"histogram": ("_bucket", "_count", "_sum")}
    names = {name + part for name, kind in kinds.items() for part in parts.get(kind, ("",))}
    return names | OF_LIBRARY


def test_the_queries_are_found() -> None:
    """Each selector of a query is looked at, also inside of functions and comparisons."""
    text = "histogram_quantile(0.9, sum by (le) (rate(a_bucket[5m]))) > 1 and max(b) / on() c < 2"
    assert [each.name for each in selectors(promql_parser.parse(text))] == ["a_bucket", "b", "c"]
    assert len(ALERTS) >= 10
    assert len(PANELS) >= 20


@pytest.mark.parametrize(("place", "query"), list(expressions()))
def test_each_metric_exists(place: str, query: str, metrics: set[str]) -> None:
    """The reference lists the metrics of the server, and another test compares it with a scrape."""
    used = [each.name for each in selectors(promql_parser.parse(query))]
    assert used, place
    assert [name for name in used if name not in metrics and name not in OF_PROMETHEUS] == []


def test_alerts_are_whole() -> None:
    """Each has a severity, a sentence, and an entry of the runbook; its name stands once."""
    names = [alert["alert"] for alert in ALERTS]
    assert len(set(names)) == len(names)
    for alert in ALERTS:
        assert alert["labels"]["severity"] in {"critical", "warning"}
        assert alert["annotations"]["summary"].endswith(".")
        page, _, anchor = alert["annotations"]["runbook"].partition("#")
        assert anchor in _anchors(ROOT / page), alert["alert"]


def test_the_dashboard_is_whole() -> None:
    """Panels have ids and titles of their own, do not overlap, and use the chosen data source."""
    for key in ("id", "title"):
        values = [panel[key] for panel in DASHBOARD["panels"]]
        assert len(set(values)) == len(values)
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${datasource}"}
    assert DASHBOARD["uid"] == "stateyard"


def test_the_rules_say_what_they_should() -> None:
    """``promtool`` checks rules and their tests, where it is; else their shape is checked."""
    tests = yaml.safe_load((PROMETHEUS / "stateyard.rules.test.yml").read_text(encoding="utf-8"))
    tested = {each["alertname"] for test in tests["tests"] for each in test["alert_rule_test"]}
    assert tested <= {alert["alert"] for alert in ALERTS}
    scrape = yaml.safe_load((PROMETHEUS / "scrape.yml").read_text(encoding="utf-8"))
    assert scrape["rule_files"] == ["stateyard.rules.yml"]
    if PROMTOOL is None:
        return
    for words in (
        ("check", "rules", "stateyard.rules.yml"),
        ("test", "rules", "stateyard.rules.test.yml"),
        ("check", "config", "--syntax-only", "scrape.yml"),
    ):
        done = subprocess.run(
            [PROMTOOL, *words], cwd=PROMETHEUS, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
