"""EventBridge Scheduler's actions ask for rights, are on record, and fire as they say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.db.models import query as querysets

from console import access
from console.awsapi import rest_json, services
from console.db.audit import Actor
from console.errors import ServiceError
from console.features.notifications.store import deliveries, scheduler
from console.models import AuditEntry, Delivery, EventRule, Execution, Membership, Project, Role
from console.store.people import people
from tests.console.store.helpers import PASS, ROLE, create
from tests.features.notifications.relay import carry_all

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

HOST = "127.0.0.1:8083"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:machine"
GROUP = "arn:aws:scheduler:us-east-1:123456789012:schedule-group/team"
SETTINGS: dict[str, Any] = {
    "ScheduleExpression": "rate(1 day)",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": MACHINE, "RoleArn": ROLE},
}
CALLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "CreateSchedule": ("POST", "/schedules/new", SETTINGS),
    "UpdateSchedule": ("PUT", "/schedules/old", SETTINGS),
    "GetSchedule": ("GET", "/schedules/old", {}),
    "ListSchedules": ("GET", "/schedules?NamePrefix=ol&MaxResults=10", {}),
    "DeleteSchedule": ("DELETE", "/schedules/old?groupName=default", {}),
    "CreateScheduleGroup": ("POST", "/schedule-groups/new", {}),
    "GetScheduleGroup": ("GET", "/schedule-groups/team", {}),
    "ListScheduleGroups": ("GET", "/schedule-groups", {}),
    "ListTagsForResource": ("GET", f"/tags/{quote(GROUP, safe='')}", {}),
    "TagResource": (
        "POST",
        f"/tags/{quote(GROUP, safe='')}",
        {"Tags": [{"Key": "k", "Value": "v"}]},
    ),
    "UntagResource": ("DELETE", f"/tags/{quote(GROUP, safe='')}?TagKeys=k&TagKeys=l", {}),
    "DeleteScheduleGroup": ("DELETE", "/schedule-groups/team", {}),
}


@pytest.fixture
def schedule(project: Project) -> Iterator[EventRule]:
    """A schedule in the default group, and a further group."""
    access._principals.clear()
    create(project, PASS)
    scheduler.create_group(project, "us-east-1", "team", {"k": "v"})
    yield schedule_of(project, "rate(1 day)")
    access._principals.clear()


@pytest.fixture
def owner_key(project: Project, django_user_model: Any) -> str:
    """The access key of an owner of the project."""
    user = django_user_model.objects.create_user("somebody")
    Membership.objects.create(project=project, user=user, role=Role.OWNER)
    return people.new_key(user, project, Actor("owner"))[0].key_id


def schedule_of(project: Project, expression: str, **more: Any) -> EventRule:
    """Make the schedule "old"."""
    key = scheduler.ScheduleKey(project, "us-east-1", "default", "old")
    target = {"Arn": MACHINE, "RoleArn": ROLE}
    return scheduler.create_schedule(
        key, scheduler.ScheduleSettings(expression, target, **more), "", Actor("ed")
    )


def send(action: str, key_id: str) -> dict[str, Any]:
    """Hand a signed call to the edge; raise its error."""
    method, address, params = CALLS[action]
    body = json.dumps(params).encode() if params else b""
    request = AWSRequest(method, f"http://{HOST}{address}", {"Host": HOST}, body)
    if key_id:
        SigV4Auth(
            Credentials(key_id, access.secret_for(key_id)), "scheduler", "us-east-1"
        ).add_auth(request)
    headers = {name.lower(): [value] for name, value in request.headers.items()}
    path, _, query = address.partition("?")
    scope = {"method": method, "path": path, "raw_path": path.encode()}
    scope["query_string"] = query.encode()
    return rest_json._answer_call(services.SCHEDULER, scope, headers, body, "request")


def test_every_action_has_a_call_here() -> None:
    """A new action comes into this test."""
    assert set(CALLS) == set(services.SCHEDULER.handlers)


@pytest.mark.postgres_too
@pytest.mark.parametrize(
    "settings",
    [
        {"Description": "a\x00b"},
        {"Target": {"Arn": "arn:aws:sqs:us-east-1:123456789012:q\x00", "RoleArn": ROLE}},
    ],
)
def test_a_text_that_postgresql_does_not_take_is_stored_without(
    schedule: EventRule,
    django_user_model: Any,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
) -> None:
    """U+0000 becomes U+FFFD; it is no failure of the server, which an SDK would try again."""
    monkeypatch.setitem(CALLS, "CreateSchedule", ("POST", "/schedules/new", SETTINGS | settings))
    user = django_user_model.objects.create_user("somebody")
    Membership.objects.create(project=schedule.project, user=user, role=Role.EDITOR)
    send("CreateSchedule", access.create_access_key(user, schedule.project).key_id)
    row = EventRule.objects.get(schedule_name="new")
    assert "\ufffd" in row.description + row.targets.get().address


@pytest.mark.postgres_too
@pytest.mark.parametrize("role", ["", *Role])
@pytest.mark.parametrize("action", CALLS)
def test_each_role_may_call_what_its_cell_says(
    schedule: EventRule, django_user_model: Any, role: str, action: str
) -> None:
    """The others are refused, and so is a call without a signature; changes are on record."""
    user = django_user_model.objects.create_user("somebody")
    key = ""
    if role:
        Membership.objects.create(project=schedule.project, user=user, role=role)
        key = people.new_key(user, schedule.project, Actor("owner"))[0].key_id
    least = access.least_role(f"scheduler:{action}")
    assert least is not None
    AuditEntry.objects.all().delete()
    if role and list(Role).index(Role(role)) >= list(Role).index(Role(least)):
        send(action, key)
        acts = AuditEntry.objects.values_list("action", "actor")
        assert list(acts) == ([(f"scheduler:{action}", "somebody")] if least == "editor" else [])
        return
    with pytest.raises(ServiceError) as caught:
        send(action, key)
    expected = "AccessDeniedException" if role else "MissingAuthenticationTokenException"
    assert caught.value.code == expected
    assert not AuditEntry.objects.exists()


@pytest.mark.postgres_too
@pytest.mark.parametrize("action", [name for name in CALLS if not name.startswith("Create")])
def test_nothing_of_another_project_is_answered_or_changed(
    schedule: EventRule, django_user_model: Any, action: str
) -> None:
    """The owner of another project finds nothing under our names."""
    other = Project.objects.create(name="other", account_id="999999999999")
    user = django_user_model.objects.create_user("stranger")
    Membership.objects.create(project=other, user=user, role=Role.OWNER)
    key = people.new_key(user, other, Actor("owner"))[0].key_id
    before = list(EventRule.objects.values())
    if action.startswith("List") and action != "ListTagsForResource":
        assert "123456789012" not in json.dumps(send(action, key))
    else:
        with pytest.raises(ServiceError) as caught:
            send(action, key)
        assert caught.value.code == "ResourceNotFoundException"
    assert list(EventRule.objects.values()) == before


def test_an_unknown_path_is_no_operation(schedule: EventRule) -> None:
    """Nor is a known one with another method."""
    with pytest.raises(ServiceError) as caught:
        rest_json._answer_call(
            services.SCHEDULER,
            {"method": "PATCH", "path": "/schedules/old"},
            {"host": [HOST]},
            b"",
            "request",
        )
    assert caught.value.code == "UnknownOperationException"


@pytest.mark.parametrize("action", ["GetSchedule", "ListSchedules"])
def test_a_schedule_that_is_deleted_while_it_is_read_is_not_there(
    schedule: EventRule, monkeypatch: pytest.MonkeyPatch, owner_key: str, action: str
) -> None:
    """It is read before its target is: what deletes itself after its last run may be gone then."""
    read = querysets.prefetch_related_objects

    def late(*about: Any) -> None:
        schedule.targets.all().delete()
        read(*about)

    monkeypatch.setattr(querysets, "prefetch_related_objects", late)
    if action == "ListSchedules":
        assert send(action, owner_key) == {"Schedules": []}
        return
    with pytest.raises(ServiceError) as caught:
        send(action, owner_key)
    assert caught.value.code == "ResourceNotFoundException"


# -- what is due -----------------------------------------------------------------------------------


def test_a_window_spreads_the_starts(project: Project) -> None:
    """A delivery is due within the window, and its age counts from then."""
    create(project, PASS)
    row = schedule_of(project, "rate(1 day)", window_minutes=60)
    assert row.due_ms == row.created_ms
    assert deliveries.fire_due() == 1
    delivery = Delivery.objects.get()
    assert row.created_ms <= delivery.next_ms == delivery.created_ms
    assert delivery.next_ms <= row.created_ms + 61 * 60_000


def test_a_schedule_is_not_due_after_its_end(project: Project) -> None:
    """It fires once here, stays enabled, and is never due again."""
    create(project, PASS)
    now_ms = schedule_of(project, "cron(0 0 1 1 ? 2099)").created_ms
    key = scheduler.ScheduleKey(project, "us-east-1", "default", "old")
    scheduler.delete_schedule(key)
    schedule_of(project, "rate(1 day)", end_ms=now_ms + 3_600_000)
    assert deliveries.fire_due() == 1
    assert deliveries.fire_due() == 0
    row = EventRule.objects.get()
    assert (row.state, row.due_ms) == ("ENABLED", None)


@pytest.mark.postgres_too
def test_a_completed_schedule_is_deleted_with_its_last_delivery(project: Project) -> None:
    """Its execution stays, and the audit says what became of it."""
    create(project, PASS)
    row = schedule_of(project, "rate(1 day)", end_ms=2**41, after_completion="DELETE")
    EventRule.objects.update(end_ms=row.created_ms)
    assert deliveries.fire_due() == 1
    assert EventRule.objects.exists()
    carry_all()
    assert not EventRule.objects.exists()
    assert Execution.objects.get().started_by == "schedule default/old"
    assert AuditEntry.objects.filter(action="scheduler:DeleteSchedule", target=row.arn).exists()


def test_a_completed_schedule_with_a_dead_letter_stays(project: Project) -> None:
    """Deleting it would delete what was not delivered."""
    machine = create(project, PASS)
    row = schedule_of(project, "rate(1 day)", end_ms=2**41, after_completion="DELETE")
    EventRule.objects.update(end_ms=row.created_ms)
    deliveries.fire_due()
    machine.delete()
    carry_all()
    assert Delivery.objects.get().status == "dead"
    assert EventRule.objects.get().due_ms is None


def test_a_schedule_starts_with_the_rights_of_its_editor(project: Project) -> None:
    """Not with those of whoever made the machine."""
    create(project, PASS)
    schedule_of(project, "rate(1 day)")
    deliveries.fire_due()
    carry_all()
    assert json.loads(Execution.objects.get().acting_for or "") == ["ed"]


@pytest.mark.usefixtures("schedule")
def test_a_query_parameter_that_is_none_is_refused(
    owner_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is a member of the path or the query that stands in the body."""
    for action, method, address, params, problem in (
        ("ListSchedules", "GET", "/schedules?ScheduleGroups=team", {}, "no parameter"),
        ("UpdateSchedule", "PUT", "/schedules/old", {**SETTINGS, "Name": "x"}, "Name: stands in"),
        ("UpdateSchedule", "PUT", "/schedules/old", {**SETTINGS, "Paused": True}, "'Paused'"),
    ):
        monkeypatch.setitem(CALLS, action, (method, address, params))
        with pytest.raises(ServiceError, match=problem):
            send(action, owner_key)


def test_a_universal_target_takes_the_parameters_of_start_execution_only() -> None:
    """A misspelt one would start an execution without it."""
    good = {"StateMachineArn": MACHINE, "Name": "n", "Input": "{}", "TraceHeader": "Root=1-5-6"}
    assert scheduler._universal_problem(good) == ""
    for wrong, problem in (({"Data": "{}"}, "'Data'"), ({"TraceHeader": "x" * 257}, "256")):
        assert problem in scheduler._universal_problem(good | wrong)
