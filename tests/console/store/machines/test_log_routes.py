"""Where executions log: what creating, changing and deleting a machine notes."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

from django.apps import apps

from console.db import clock
from console.models import LogGroup, LogRoute, StateMachine
from console.store.machines import log_groups, machines
from tests.console.store.helpers import PASS, REGION, ROLE, create

if TYPE_CHECKING:
    import pytest

    from console.models import Project


def logging(name: str, level: str = "ALL") -> str:
    """Return a logging configuration as it is kept."""
    arn = f"arn:aws:logs:{REGION}:123456789012:log-group:{name}:*"
    group: dict[str, Any] = {"cloudWatchLogsLogGroup": {"logGroupArn": arn}}
    return json.dumps({"level": level, "includeExecutionData": True, "destinations": [group]})


def routes() -> list[tuple[str, str]]:
    """Return (group, level) of every route, in order of time."""
    return list(LogRoute.objects.order_by("since_ms").values_list("group", "level"))


def test_only_a_change_of_logging_makes_a_route(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that never logged has none; another definition makes no second one."""
    times = iter(range(1_000, 2_000))
    monkeypatch.setattr(clock, "now_ms", lambda: next(times))
    quiet = create(project, PASS, "quiet")
    machines.update_machine(quiet, role_arn=f"{ROLE}2")
    assert routes() == []
    machines.update_machine(quiet, logging=logging("/team/a"))
    machines.update_machine(quiet, role_arn=ROLE)
    machines.update_machine(quiet, logging=logging("/team/b", "ERROR"))
    machines.update_machine(quiet, logging="")
    assert routes() == [("/team/a", "ALL"), ("/team/b", "ERROR"), ("", "OFF")]


def test_a_machine_made_again_does_not_log_as_the_one_before(project: Project) -> None:
    """Its predecessor's logs stay, its own executions log nothing."""
    text = json.dumps(PASS)
    parameters: dict[str, Any] = {"name": "m", "definition": text, "role_arn": ROLE}
    first = machines.create_machine(project, REGION, **parameters, logging=logging("/team/a"))
    LogRoute.objects.update(since_ms=1)
    machines.delete_machine(project, first.arn)
    machines.create_machine(project, REGION, **parameters)
    assert routes() == [("/team/a", "ALL"), ("", "OFF")]


def test_machines_from_before_get_their_routes(project: Project) -> None:
    """The migration notes what machines with a logging configuration say already."""
    create(project, PASS, "quiet")
    StateMachine.objects.create(
        project=project,
        region=REGION,
        name="old",
        arn="arn:aws:states:us-east-1:123456789012:stateMachine:old",
        role_arn=ROLE,
        definition=StateMachine.objects.get().definition,
        logging=logging("/team/a", "FATAL"),
        created_ms=5,
        updated_ms=7,
    )
    assert routes() == []
    importlib.import_module("console.migrations.0021_logs").note_routes(apps, None)
    assert routes() == [("/team/a", "FATAL")]
    assert LogRoute.objects.get().since_ms == LogGroup.objects.get().created_ms == 7
    assert log_groups.get_group(project, REGION, "/team/a").deleted_ms is None
