"""WAIT_TIME_SCALE shortens pauses, and nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from console.config.local_options import without_own_endpoint
from console.models import Project, ServerFact, Timer
from console.store.state import wait_scale
from console.worker import Embedded
from tests.console.store.helpers import WAIT, create, drain, ended, function, start

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

BUSY = {**function("none"), "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1000}]}


def left_s(execution: Any, name: str) -> float:
    """Return the seconds until a timer fires."""
    due = Timer.objects.get(execution_id=execution.pk, name__startswith=name).due_ms
    return due / 1000 - time.time()


def test_a_wait_is_scaled_and_a_timeout_is_not(project: Project, settings: Settings) -> None:
    """A Wait of an hour is half an hour; the limit of the execution stays."""
    settings.STATEYARD_WAIT_TIME_SCALE = 0.5
    execution = start(create(project, {**WAIT, "TimeoutSeconds": 7200}))
    drain(execution)
    assert left_s(execution, "timer-") == pytest.approx(1800, abs=30)
    assert left_s(execution, "execution") == pytest.approx(7200, abs=30)


def test_pauses_of_no_length_end_at_once(project: Project, settings: Settings) -> None:
    """Two hours of waiting and retrying pass at once, and the checker bears it."""
    settings.STATEYARD_WAIT_TIME_SCALE = 0.0
    definition = {
        "StartAt": "W",
        "States": {
            "W": {"Type": "Wait", "Seconds": 3600, "Next": "B"},
            "B": {**BUSY, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "E"}], "End": True},
            "E": {"Type": "Succeed"},
        },
    }
    worker = Embedded()
    worker.start()
    try:
        execution = ended(start(create(project, definition)), 30)
    finally:
        worker.stop()
    assert execution.status == "SUCCEEDED"
    assert wait_scale.were_scaled()
    assert ServerFact.objects.filter(name="pauses were scaled").count() == 1


def test_a_timer_is_not_scaled_by_default(project: Project) -> None:
    """A Wait of an hour takes an hour, and nothing is noted."""
    execution = start(create(project, WAIT))
    drain(execution)
    assert left_s(execution, "timer-") == pytest.approx(3600, abs=30)
    wait_scale.note_scale()
    assert not wait_scale.were_scaled()


@pytest.mark.parametrize(
    ("url", "stays"),
    [
        ("http://localhost:8083", False),
        ("http://localhost:8083/", False),
        ("http://localhost:8084", True),
        ("http://other:8083", True),
        ("https://localhost", True),
    ],
)
def test_only_its_own_address_is_ignored(url: str, stays: bool) -> None:
    """What ``STEP_FUNCTIONS_ENDPOINT`` names stays a target if it is another server."""
    key = {"access_key_id": "stepfunctions-local"}
    targets = {"sqs": {}, "stepfunctions": {"endpoint_url": url, **key}}
    remaining = without_own_endpoint(targets, 8083, lambda name: name == "localhost")
    assert ("stepfunctions" in remaining, "sqs" in remaining) == (stays, True)
    written = {"stepfunctions": {"endpoint_url": url, "access_key_id": "AKIA"}}
    assert without_own_endpoint(written, 8083, lambda _: True) == written
