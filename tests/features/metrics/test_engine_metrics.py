"""Metrics of the server and of each process: names, labels, cost, and what an outage leaves."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client import parser

from console.asgi import application
from console.db import instruments, outages
from console.features.metrics import engine_metrics
from console.features.metrics import port as metrics_port
from console.server import answers
from console.store.state import health
from console.store.state.health import Health
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.loops import looped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from console.models import Project

pytestmark = pytest.mark.django_db(transaction=True)
REFERENCE = Path(__file__).parents[3] / "docs/reference/metrics.md"
LABELS = {"version", "way", "kind", "code", "le"}


def scraped() -> dict[str, Metric]:
    """Return the families of ``/metrics`` by name, as Prometheus reads them."""
    text = Client().get("/metrics", headers={"Accept": "text/plain"}).content.decode()
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def value_of(families: dict[str, Metric], name: str, **labels: str) -> float:
    """Return the value of a sample."""
    samples = [sample for family in families.values() for sample in family.samples]
    values = [each.value for each in samples if (each.name, each.labels) == (name, labels)]
    (value,) = values
    return value


def own_families() -> Iterator[Metric]:
    """Yield the families of process and server."""
    yield from engine_metrics.process_families()
    yield from engine_metrics.server_families(health.check_health())


def test_every_metric_is_in_the_reference() -> None:
    """The page has a row for each; names and units follow Prometheus's conventions."""
    page = REFERENCE.read_text(encoding="utf-8")
    families = [each for each in own_families() if each.name.startswith("stateyard")]
    assert len(families) >= 15
    for family in families:
        shown = {
            "counter": f"{family.name}_total",
            "info": f"{family.name}_info",
        }.get(family.type, family.name)
        assert f"| `{shown}` |" in page, shown
        assert re.fullmatch(r"stateyard_[a-z_]+", family.name)
        assert not family.name.endswith("_total")
        assert family.documentation
        assert not family.unit or family.name.endswith(family.unit)


def test_a_scrape_has_the_facts_of_the_server(project: Project) -> None:
    """Timers, waiting work, readiness, version; in the format that Prometheus reads."""
    drain(start(create(project, WAIT, "waits"), 1))
    families = scraped()
    assert value_of(families, "stateyard_ready") in (0, 1)
    assert value_of(families, "stateyard_timers_open") == 1
    assert value_of(families, "stateyard_timers_late") == 0
    assert value_of(families, "stateyard_queue_depth", kind="steps") == 0
    assert value_of(families, "stateyard_oldest_runnable_seconds") == 0
    (build,) = families["stateyard_build_info"].samples
    assert set(build.labels) == {"version"}
    assert "process_resident_memory_bytes" in families
    assert "stateyard_executions_started" in families, "the metrics of projects stay"


def test_steps_and_commits_are_timed(project: Project) -> None:
    """Each commit of a change is in the histogram of its way."""
    before = sum(each.count for each in instruments.COMMITS.read().values())
    drain(start(create(project, PASS), 1))
    after = instruments.COMMITS.read()
    assert sum(each.count for each in after.values()) > before
    assert set(after) <= {("grouped",), ("alone",)}


def test_a_histogram_counts_up_to_each_bound() -> None:
    """Its buckets are cumulative; a value on a bound is below it; the rest is in +Inf."""
    durations = instruments.DurationHistogram("stateyard_test_seconds", "of a test", ("kind",))
    instruments.INSTRUMENTS.remove(durations)
    for seconds in (0.001, 0.002, 0.3, 60.0):
        durations.add(seconds, "a")
    spread = durations.read()["a",]
    assert spread.buckets[:2] == ((0.001, 1), (0.0025, 2))
    assert spread.buckets[-1] == (10.0, 3)
    assert (spread.count, round(spread.sum_s, 3)) == (4, 60.303)


@pytest.mark.parametrize(
    ("method", "path", "headers", "kind"),
    [
        ("POST", "/", [(b"x-amz-target", b"AWSStepFunctions.ListStateMachines")], answers.API),
        ("POST", "/", [(b"x-amz-target", b"AWSStepFunctions.GetActivityTask")], answers.WAIT),
        ("GET", "/healthz", [], answers.PROBE),
        ("GET", "/static/none.css", [], answers.STATIC),
        ("GET", "/login/", [], answers.PAGE),
        ("GET", "/api/none", [], answers.API),
    ],
)
def test_answers_are_counted_by_kind(
    method: str, path: str, headers: list[tuple[bytes, bytes]], kind: str
) -> None:
    """A label is a kind of request and a code, never an address or a name."""
    before = instruments.REQUESTS.read()
    looped(lambda: ask(method, path, headers))
    after = instruments.REQUESTS.read()
    (changed,) = [labels for labels, number in after.items() if number != before.get(labels, 0)]
    assert changed[0] == kind
    assert changed[1].isdigit()
    assert instruments.ANSWERS.read()[kind,].count >= 1


async def ask(method: str, path: str, headers: list[tuple[bytes, bytes]]) -> None:
    """Send a request to the application of the server."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8083),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(_message: dict[str, Any]) -> None:
        return None

    await application(scope, receive, send)


def test_labels_are_few() -> None:
    """No family of the server has a label that people or programs choose."""
    labels = {
        label for family in own_families() for sample in family.samples for label in sample.labels
    }
    assert labels <= LABELS


def test_an_outage_leaves_the_numbers_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape answers while the database does not: it is not ready, and the outage is counted."""
    down = Health(("the database does not answer: OperationalError",), disk_free_bytes=5)
    monkeypatch.setattr(health, "check_health", lambda: down)
    outage = dict(instruments.OUTAGES.read())
    monkeypatch.setattr(outages, "began", None)
    outages.note_outage("a test", OSError("gone"))
    with CaptureQueriesContext(connection) as queries:
        families = scraped()
    assert value_of(families, "stateyard_ready") == 0
    assert value_of(families, "stateyard_database_outages_total") == outage[()] + 1
    assert "stateyard_workers_alive" not in families
    assert "stateyard_executions_started" not in families
    assert not [each for each in queries if "console_" in each["sql"]]


def test_the_numbers_of_a_process_cost_no_query() -> None:
    """A worker answers its own from memory."""
    with CaptureQueriesContext(connection) as queries:
        assert list(engine_metrics.process_families())
    assert len(queries) == 0


def test_readyz_tells_the_same_facts_as_before() -> None:
    """What the metrics need beside them is not in its JSON."""
    assert "answered" not in Client().get("/readyz").json()


# -- the port of a worker --------------------------------------------------------------------------


def get_status(port: int, path: str = "/metrics", token: str = "") -> tuple[int, str]:
    """Ask a port; return status and text."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_worker_answers_at_its_port(settings: Any) -> None:
    """With the token only; without one set, to this machine only."""
    port = metrics_port.serve_metrics(0, whole=False)
    status, text = get_status(port)
    assert status == 200
    assert "stateyard_step_seconds_count" in text
    assert "stateyard_workers_alive" not in text
    assert get_status(port, "/")[0] == 404
    settings.STATEYARD_METRICS_TOKEN = "s3cret"
    assert get_status(port)[0] == 401
    assert get_status(port, token="other")[0] == 401
    assert get_status(port, token="s3cret")[0] == 200
    with pytest.raises(OSError, match="in use"):
        metrics_port.serve_metrics(port, whole=False)


def test_a_web_process_answers_for_the_server(project: Project) -> None:
    """Its port has the facts of the database and the metrics of projects, too."""
    port = metrics_port.serve_metrics(0, whole=True)
    status, text = get_status(port)
    assert status == 200
    assert "stateyard_queue_depth" in text
    assert "stateyard_executions_started" in text


def test_a_port_needs_one_process_and_the_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes cannot share a port; without the feature there is nothing to serve."""
    with pytest.raises(CommandError, match="got 2 processes, wanted 1"):
        call_command("worker", "--metrics-port", "9464", "--processes", "2")
    monkeypatch.setattr("console.management.metrics_port.hooked", lambda _: ())
    with pytest.raises(CommandError, match="leaves metrics out"):
        call_command("worker", "--metrics-port", "9464")
