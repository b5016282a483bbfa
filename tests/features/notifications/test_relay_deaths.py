"""Every notification is delivered when the process dies before or after any commit."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from console.features.notifications import notices
from console.features.notifications.store import deliveries, routing, rules
from console.models import Delivery, Execution, OutboxEvent
from tests.console.store.helpers import PASS, create
from tests.console.worker.test_crash_points import PAUSE, Death, die_at, live
from tests.features.notifications.relay import carry, claim_all

if TYPE_CHECKING:
    from console.models import Project, StateMachine


def life(machine: StateMachine) -> None:
    """Live like a process: end the execution, take over what was being sent, send all there is."""
    live(machine, 1)
    deliveries.release_deliveries(set())
    while routing.route_events():
        pass
    while numbers := claim_all(1):
        for number in numbers:
            carry(number)


@pytest.mark.postgres_too
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_every_commit_between_a_start_and_the_last_delivery(project: Project, moment: str) -> None:
    """Both events arrive, twice at most and with one id each; each starts one execution."""
    first, second = create(project, PAUSE), create(project, PASS, "second")
    pattern = json.dumps({"detail": {"stateMachineArn": [first.arn]}})
    rules.put_rule(project, "us-east-1", "r", pattern=pattern)
    targets = [{"Id": "1", "Arn": "https://example.com"}, {"Id": "2", "Arn": second.arn}]
    rules.put_targets(project, "us-east-1", "r", targets)
    commit, reached = 1, True
    while reached:
        sent: Counter[str] = Counter()

        def send(notice: notices.Notice, sent: Counter[str] = sent) -> None:
            sent[notice.event_id] += 1

        with pytest.MonkeyPatch.context() as receiving:
            receiving.setattr(notices, "send_notice", send)
            with pytest.MonkeyPatch.context() as monkeypatch:
                count = die_at(monkeypatch, commit, moment)
                try:
                    life(first)
                except Death:
                    reached = True
                else:
                    reached = count[0] >= commit
            life(first)
        _assert_told(first, second, sent, f"{moment} commit {commit}")
        for table in (Execution, OutboxEvent, Delivery):
            table.objects.all().delete()
        commit += 1
    assert commit > 8, "start, end, routing, and two commits a delivery"


def _assert_told(first: StateMachine, second: StateMachine, sent: Counter[str], where: str) -> None:
    told: dict[str, Any] = {
        json.loads(event.body)["detail"]["status"]: event.event_id
        for event in OutboxEvent.objects.filter(about__contains=f":{first.name}:")
    }
    assert set(told) == {"RUNNING", "SUCCEEDED"}, where
    assert set(sent) == set(told.values()), where
    assert max(sent.values()) <= 2, where
    assert set(Delivery.objects.values_list("status", flat=True)) == {"delivered"}, where
    started = Execution.objects.filter(state_machine=second).values_list("name", flat=True)
    assert sorted(name.partition("_")[0] for name in started) == sorted(told.values()), where
