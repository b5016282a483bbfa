"""Nothing of one project is answered to people of another one: each page, action and kind of row.

Everything of the project ``quokka`` has that word in it. People of another project name its things,
and then the same things as ``wombat``, which do not exist: both answers must be the same, letter by
letter. The owner of ``quokka`` asks as well, and gets another answer: the question is a real one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import models
from django.test import Client

from console import access
from console.awsapi import rest_json, services, shapes
from console.db.audit import Actor
from console.db.writer import Change
from console.errors import ServiceError
from console.features.alarms.models import Alarm
from console.features.audit.models import AuditSeal
from console.features.bulk.models import BulkJob
from console.features.notifications.store import rules, scheduler
from console.models import (
    AccessKey,
    AuditEntry,
    Delivery,
    EventRule,
    Execution,
    Invitation,
    MapRun,
    Membership,
    Project,
    Role,
    SavedView,
    StartLink,
    TaskRow,
    Version,
)
from console.store.executions.start import start_execution
from console.store.machines import log_groups, machines, tags, versions
from console.store.map_runs import map_runs, map_tasks
from console.store.people import people
from console.store.tasks import activities, schedule
from console.web.core.rights import PAGES
from tests.console.awsapi.world import MAP
from tests.console.store.helpers import PASS, drain, one
from tests.features.projects.rows import RowsOfProject
from tests.security.test_rights import HOST, OWN_NAME, ROUTES, send, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow
SECRET, MISSING = "quokka", "wombat"
ACCOUNT, OTHER_ACCOUNT, NO_ACCOUNT = "777777777777", "999999999999", "888888888888"
NUMBER, NO_NUMBER = 777_001, 888_001
KEY = f"AKIA{SECRET.upper()}2345672345"
"""Id of an access key of ``quokka``."""
TOKENS: dict[str, str] = {}
"""Task token of ``quokka`` -> one of a task that does not exist."""
TWIN = "twin"
"""Name of a state machine and an execution in both projects."""
BY = Actor(SECRET, SECRET, SECRET)
ROLES = [str(role) for role in Role]
BY_ROLE = [
    pytest.param(role, marks=pytest.mark.postgres_too) if role == "owner" else role
    for role in ROLES
]
"""The roles for tests whose statements are the same for each: one is enough on PostgreSQL."""
ADMINISTRATOR = "administrator"


def missing(value: Any) -> Any:
    """Return a question or an answer about ``quokka`` as one about ``wombat``."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = text.replace(SECRET, MISSING).replace(SECRET.upper(), MISSING.upper())
    text = text.replace(str(NUMBER), str(NO_NUMBER))
    for token, other in TOKENS.items():
        text = text.replace(token, other)
    return text if isinstance(value, str) else json.loads(text)


def elsewhere(value: Any) -> Any:
    """Return a question or an answer about ``quokka`` as one about an account of nobody."""
    return json.loads(json.dumps(value).replace(ACCOUNT, NO_ACCOUNT))


# -- what there is ---------------------------------------------------------------------------------


class World:
    """Two projects: ``quokka`` has a thing of each kind, and the people are of the other one."""

    def __init__(self, django_user_model: Any) -> None:
        access.default_project()
        self.secret = Project.objects.create(name=SECRET, account_id=ACCOUNT)
        self.other = Project.objects.create(name="other", account_id=OTHER_ACCOUNT)
        self.users: dict[str, Any] = {}
        for role in ROLES:
            self._member(self.other, role, role, django_user_model)
        self._member(self.secret, SECRET, "owner", django_user_model)
        self._member(self.secret, f"{SECRET}2", "viewer", django_user_model)
        root = django_user_model.objects.create_user(ADMINISTRATOR, is_superuser=True)
        self.users[ADMINISTRATOR] = root
        Membership.objects.create(project=self.other, user=root, role="viewer")
        self.names: dict[str, str] = {}
        self._fill()
        self._twins()
        task = TaskRow.objects.get(execution__state_machine__name=f"{SECRET}-work")
        arn = task.execution.arn
        TOKENS.clear()
        TOKENS[schedule.token_of(arn, task.task)] = schedule.token_of(arn, NO_NUMBER)

    def _member(self, project: Project, name: str, role: str, model: Any) -> None:
        self.users[name] = model.objects.create_user(name)
        Membership.objects.create(project=project, user=self.users[name], role=role)

    def key(self, name: str) -> str:
        """Return the id of a new key of a person."""
        project = self.secret if name.startswith(SECRET) else self.other
        return people.new_key(self.users[name], project, BY)[0].key_id

    def _machine(self, project: Project, definition: Any, name: str) -> Any:
        role = f"arn:aws:iam::{project.account_id}:role/{SECRET}"
        text = json.dumps(definition)
        return machines.create_machine(
            project, "us-east-1", name=name, definition=text, role_arn=role
        )

    def _fill(self) -> None:
        """Make things of ``quokka`` as people make them."""
        project = self.secret
        activity = activities.create_activity(project, "us-east-1", SECRET)
        machine = self._machine(project, one(SECRET, Type="Wait", Seconds=3600), SECRET)
        start_execution(machine, name=SECRET, input=json.dumps({SECRET: 1}))
        drain(Execution.objects.get(name=SECRET))
        version = versions.publish_version(machine)
        route = [{"stateMachineVersionArn": version.arn, "weight": 100}]
        alias = versions.create_alias(project, SECRET, route)
        mapper = self._machine(project, MAP, f"{SECRET}-map")
        drain(start_execution(mapper, name=SECRET, input="[1, 2]"))
        assert map_runs.begin_map_run(*map_tasks.scheduled_maps()[0])
        work = one("A", Type="Task", Resource=activity.arn)
        worker = self._machine(project, work, f"{SECRET}-work")
        drain(start_execution(worker, name=SECRET, input="{}"))
        tags.put_tags(machine.arn, {SECRET: SECRET})
        rules.put_rule(project, "us-east-1", SECRET, pattern=json.dumps({"source": [SECRET]}))
        role = machine.role_arn
        target = {"Id": SECRET, "Arn": machine.arn, "RoleArn": role}
        rules.put_targets(project, "us-east-1", SECRET, [target])
        scheduler.create_group(project, "us-east-1", SECRET, {SECRET: SECRET})
        for group in ("default", SECRET):
            nightly = scheduler.ScheduleKey(project, "us-east-1", group, SECRET)
            daily = scheduler.ScheduleSettings("rate(1 day)", {"Arn": machine.arn, "RoleArn": role})
            scheduler.create_schedule(nightly, daily)
        log_groups.create_group(project, "us-east-1", f"/{SECRET}", BY)
        rule_arn = f"arn:aws:events:us-east-1:{ACCOUNT}:rule/{SECRET}"
        self.names = {
            "stateMachineArn": machine.arn,
            "executionArn": Execution.objects.get(state_machine=machine).arn,
            "activityArn": activity.arn,
            "mapRunArn": MapRun.objects.get().arn,
            "stateMachineAliasArn": alias.arn,
            "stateMachineVersionArn": version.arn,
            "rule": rule_arn,
            "group": f"arn:aws:scheduler:us-east-1:{ACCOUNT}:schedule-group/{SECRET}",
        }

    def _twins(self) -> None:
        """Give both projects a state machine and an execution of the same names."""
        for project, state in ((self.secret, SECRET), (self.other, "State")):
            machine = self._machine(project, one(state, Type="Wait", Seconds=3600), TWIN)
            machine.role_arn = f"arn:aws:iam::{project.account_id}:role/any"
            machine.save()
            data = {"of": project.name}
            drain(start_execution(machine, name=TWIN, input=json.dumps(data)))

    def fill_tables(self) -> None:
        """Put a row into every table of projects, and give what addresses name a known number."""
        RowsOfProject(self.secret, get_user_model().objects.create_user(f"{SECRET}3"))
        for model in (Alarm, BulkJob, EventRule, Invitation, SavedView, StartLink):
            row: Any = models.QuerySet(model).latest("pk")
            row.pk = NUMBER
            for field in model._meta.concrete_fields:
                if isinstance(field, models.CharField) and not field.choices:
                    setattr(row, field.attname, f"{SECRET} {NUMBER}"[: field.max_length])
            row.save(force_insert=True)
        Delivery.objects.filter(project=self.secret).update(id=NUMBER)
        execution = Execution.stored.get(arn=self.names["executionArn"])
        execution.pk, execution.name = NUMBER, f"{SECRET}-{NUMBER}"
        execution.arn = execution.arn.replace(f":{SECRET}:{SECRET}", f":{SECRET}:{execution.name}")
        execution.save(force_insert=True)
        key, _ = people.new_key(self.users[SECRET], self.secret, BY)
        AccessKey.objects.filter(pk=key.pk).update(key_id=KEY)


@pytest.fixture
def world(transactional_db: None, django_user_model: Any) -> Iterator[World]:
    """Return the two projects."""
    access._principals.clear()
    yield World(django_user_model)
    access._principals.clear()


def rows() -> dict[str, Any]:
    """Return all that belongs to ``quokka``, as it is now."""
    content: dict[str, list[Any]] = {}
    number = Project.objects.get(name=SECRET).pk
    for model in apps.get_app_config("console").get_models():
        names = {field.name for field in model._meta.get_fields()}
        if "project" in names and model not in (AuditEntry, AuditSeal):  # both only grow
            owned: Any = models.QuerySet(model).filter(project=number)
            content[model.__name__] = list(owned.order_by("pk").values())
    published = Version.objects.filter(state_machine__project=number)
    content["Version"] = list(published.order_by("pk").values())
    return content


# -- the API ---------------------------------------------------------------------------------------

FURTHER: dict[str, dict[str, Any]] = {
    "CreateStateMachineAlias": {"name": "live", "routingConfiguration": "ROUTE"},
    "DescribeAlarmsForMetric": {"MetricName": "ExecutionsFailed", "Namespace": "AWS/States"},
    "GetActivityTask": {},
    "GetLogEvents": {"logStreamName": "s"},
    "PutTargets": {"Targets": "TARGETS"},
    "RemoveTargets": {"Ids": [SECRET]},
    "SendTaskFailure": {},
    "SendTaskSuccess": {"output": "{}"},
    "TagResource": {"tags": [{"key": "k", "value": "theirs"}]},
    "UntagResource": {"tagKeys": ["k"]},
    "UpdateMapRun": {"maxConcurrency": 1},
    "UpdateStateMachine": {"definition": json.dumps(PASS)},
    "UpdateStateMachineAlias": {"description": "d"},
    "events:TagResource": {"Tags": [{"Key": "k", "Value": "theirs"}]},
    "events:UntagResource": {"TagKeys": ["k"]},
    "monitoring:SetAlarmState": {"StateValue": "OK", "StateReason": "r"},
}
"""What an action needs beside the thing that it is about."""


def _destruction(served_action: tuple[Any, str]) -> tuple[bool, bool]:
    """Sort what removes things last, and state machines after their versions."""
    action = served_action[1]
    return "Delete" in action, action == "DeleteStateMachine"


def questions(world: World) -> Iterator[tuple[Any, str, str, dict[str, Any]]]:
    """Yield service, action, member and parameters of each way to name a thing."""
    names = world.names
    values: dict[str, list[Any]] = {
        **{name: [arn] for name, arn in names.items() if name.endswith("Arn")},
        "resourceArn": [names["stateMachineArn"], names["activityArn"], names["mapRunArn"]],
        "ResourceARN": [names["rule"]],
        "taskToken": [*TOKENS],
        "Name": [SECRET],
        "Rule": [SECRET],
        "TargetArn": [names["stateMachineArn"]],
        "NamePrefix": [SECRET],
        "logGroupName": [f"/{SECRET}"],
        "logGroupNamePrefix": [f"/{SECRET}"],
        "AlarmNames": [[SECRET]],
        "AlarmNamePrefix": [SECRET],
        "AlarmName": [SECRET],
        "Dimensions": [[{"Name": "StateMachineArn", "Value": names["stateMachineArn"]}]],
    }
    further = json.loads(
        json.dumps(FURTHER)
        .replace(
            '"ROUTE"',
            json.dumps(
                [{"stateMachineVersionArn": names["stateMachineVersionArn"], "weight": 100}]
            ),
        )
        .replace('"TARGETS"', json.dumps([{"Id": "t", "Arn": names["stateMachineArn"]}]))
    )
    for service, action in sorted(served(), key=_destruction):
        shape = shapes.service_model(service.name).operation_model(action).input_shape
        for member in values if shape else ():
            if member not in shape.members or action in OWN_NAME or action.startswith("PutMetric"):
                continue
            more = further.get(service.permission(action), further.get(action, {}))
            for value in values[member]:
                yield service, action, member, {**more, member: value}


def told(service: Any, action: str, key: str, params: dict[str, Any]) -> str:
    """Return the answer to a call, or its error, as text."""
    return _in_words(lambda: send(service, action, key, **params))


def _in_words(call: Callable[[], Any]) -> str:
    try:
        answer = call()
        return json.dumps(answer.result() if isinstance(answer, Change) else answer, default=str)
    except ServiceError as error:
        return f"{error.code}: {error.message}"


def put_alarm(world: World) -> None:
    """Let the owner of ``quokka`` have an alarm."""
    alarm = {
        "AlarmName": SECRET,
        "Namespace": "AWS/States",
        "MetricName": "ExecutionsFailed",
        "Dimensions": [{"Name": "StateMachineArn", "Value": world.names["stateMachineArn"]}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    }
    send(services.CLOUDWATCH, "PutMetricAlarm", world.key(SECRET), **alarm)


@pytest.mark.parametrize("role", [*BY_ROLE, ADMINISTRATOR])
def test_the_api_answers_as_if_there_were_nothing(world: World, role: str) -> None:
    """Each action with each parameter that names a thing: an absent name, and an absent account."""
    put_alarm(world)
    key, before, wrong = world.key(role), rows(), []
    for service, action, member, params in questions(world):
        theirs = told(service, action, key, params)
        if missing(theirs) != told(service, action, key, missing(params)):
            wrong.append((action, member, theirs))
        if elsewhere(theirs) != elsewhere(told(service, action, key, elsewhere(params))):
            wrong.append((action, member, theirs))
    assert wrong == []
    assert rows() == before


ALIKE = {
    "ListExecutions mapRunArn",
    "ListTagsForResource resourceArn",
    "TagResource resourceArn",
    "UntagResource resourceArn",
    "RedriveExecution executionArn",
    "GetMetricStatistics Dimensions",
}
"""What the owner is told as of a thing that is not there, at least of one kind of things."""


@pytest.mark.postgres_too
def test_the_api_answers_the_owner(world: World) -> None:
    """So the questions of the test above are about things that there are."""
    put_alarm(world)
    key, alike = world.key(SECRET), set()
    for service, action, member, params in questions(world):
        before = rows()
        theirs = told(service, action, key, params)
        if missing(theirs) == told(service, action, key, missing(params)) and rows() == before:
            alike.add(f"{action} {member}")
    assert alike <= ALIKE


def schedule_calls(world: World) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield action, method, address and body of the calls of the Scheduler that name a thing."""
    target = {
        "Arn": world.names["stateMachineArn"],
        "RoleArn": f"arn:aws:iam::{OTHER_ACCOUNT}:role/any",
    }
    update = {
        "ScheduleExpression": "rate(1 day)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": target,
    }
    tagged = f"/tags/{quote(world.names['group'], safe='')}"
    yield "GetSchedule", "GET", f"/schedules/{SECRET}", {}
    yield "GetSchedule", "GET", f"/schedules/{SECRET}?groupName={SECRET}", {}
    yield "ListSchedules", "GET", "/schedules", {}
    yield "ListSchedules", "GET", f"/schedules?NamePrefix={SECRET}", {}
    yield "ListSchedules", "GET", f"/schedules?ScheduleGroup={SECRET}", {}
    yield "GetScheduleGroup", "GET", f"/schedule-groups/{SECRET}", {}
    yield "ListScheduleGroups", "GET", f"/schedule-groups?NamePrefix={SECRET}", {}
    yield "ListTagsForResource", "GET", tagged, {}
    yield "TagResource", "POST", tagged, {"Tags": [{"Key": "k", "Value": "v"}]}
    yield "UntagResource", "DELETE", f"{tagged}?TagKeys=k", {}
    yield "UpdateSchedule", "PUT", f"/schedules/{SECRET}", update
    yield "DeleteSchedule", "DELETE", f"/schedules/{SECRET}?groupName={SECRET}", {}
    yield "DeleteSchedule", "DELETE", f"/schedules/{SECRET}", {}
    yield "DeleteScheduleGroup", "DELETE", f"/schedule-groups/{SECRET}", {}


def call_scheduler(method: str, address: str, key: str, params: dict[str, Any]) -> str:
    """Return the answer of the Scheduler, or its error, as text."""
    body = json.dumps(params).encode() if params else b""
    request = AWSRequest(method, f"http://{HOST}{address}", {"Host": HOST}, body)
    SigV4Auth(Credentials(key, access.secret_for(key)), "scheduler", "us-east-1").add_auth(request)
    headers = {name.lower(): [value] for name, value in request.headers.items()}
    path, _, query = address.partition("?")
    scope: dict[str, Any] = {"method": method, "path": path, "raw_path": path.encode()}
    scope["query_string"] = query.encode()
    return _in_words(
        lambda: rest_json._answer_call(services.SCHEDULER, scope, headers, body, "request")
    )


@pytest.mark.parametrize("role", [*ROLES, ADMINISTRATOR])
def test_the_scheduler_answers_as_if_there_were_nothing(world: World, role: str) -> None:
    """Also the owner of ``quokka`` is answered something else, each time."""
    key, before, wrong = world.key(role), rows(), []
    for action, method, address, body in schedule_calls(world):
        theirs = call_scheduler(method, address, key, body)
        none = call_scheduler(method, missing(address), key, missing(body))
        if missing(theirs) != none:
            wrong.append((action, theirs, none))
    assert wrong == []
    assert rows() == before
    own = world.key(SECRET)
    for action, method, address, body in schedule_calls(world):
        theirs = call_scheduler(method, address, own, body)
        assert missing(theirs) != call_scheduler(method, missing(address), own, missing(body)), (
            action
        )


# -- pages -----------------------------------------------------------------------------------------

PARTS = {
    "<str:machine_name>": SECRET,
    "<str:execution_name>": SECRET,
    "<str:activity_name>": SECRET,
    "<str:rule_name>": SECRET,
    "<str:schedule_group>": SECRET,
    "<str:schedule_name>": SECRET,
    "<str:project_name>": SECRET,
    "<str:key>": KEY,
    "<str:kind>": "service",
    "<str:tool>": "sam",
    "<str:field>": "input",
    "<str:provider_id>": "corp",
    "<number:number>": str(NUMBER),
}
OPEN = {
    *("approval", "invitation", "login-link", "shared", "start-link", "prometheus"),
    *("mail-address", "password-reset-link"),
}
"""A secret in the address is the right to what it opens; the operator reads the metrics of all."""
OF_SERVER = {"projects", "sign-in", "server-audit", "server-audit-csv"}
OF_SERVER |= {name for name in ROUTES if name.startswith("project-") and name in PAGES}
OF_SERVER.remove("project-settings")
"""Pages that name all projects of the server to its administrators."""
CHANGING = (
    (r'(csrfmiddlewaretoken"? value=)"\w+"', r"\1"),
    (r'X-CSRFToken(&quot;|")?: ?(&quot;|")\w+', ""),
    (r'nonce="[^"]+"', ""),
    (r'data-now="\d+"', ""),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?", ""),
    (r"\b\d\d:\d\d(:\d\d(\.\d+)?)?\b", ""),
    (r"\b1\d{12}\b", ""),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32}", ""),
)
"""What differs between two answers to one question."""


def filled(route: str, name: str = SECRET) -> str:
    """Return an address of a route that names a thing of ``quokka``, or of another name."""
    for part, value in PARTS.items():
        route = route.replace(part, value.replace(SECRET, name))
    assert "<" not in route, route
    return route


def addresses(world: World) -> Iterator[tuple[str, str]]:
    """Yield name and address of each page, with each way to name a thing in it."""
    for name, route in ROUTES.items():
        if name in OPEN:
            continue
        if "<path:arn>" in route:
            for arn in world.names.values():
                yield name, route.replace("<path:arn>", quote(arn, safe=":/"))
        else:
            yield name, filled(route)


def written(answer: Any) -> str:
    """Return status, headers and content of an answer."""
    content = b"".join(answer) if answer.streaming else answer.content
    return f"{answer.status_code} {answer.get('Location', '')} {content.decode()}"


def seen(answer: Any) -> str:
    """Return status, headers and content of an answer, without what changes by itself."""
    return settled(written(answer))


def settled(text: str) -> str:
    """Return the text of an answer without what changes by itself."""
    for pattern, instead in CHANGING:
        text = re.sub(pattern, instead, text)
    return text


def difference(theirs: str, none: str) -> str:
    """Return where two answers begin to differ, "" if they do not."""
    theirs = missing(theirs)
    if theirs == none:
        return ""
    place = next(
        (
            at
            for at, (character, other) in enumerate(zip(theirs, none, strict=False))
            if character != other
        ),
        min(len(theirs), len(none)),
    )
    around = slice(max(0, place - 60), place + 60)
    return f"{theirs[around]!r} is not {none[around]!r}"


def ask(world: World, name: str, method: str, address: str, chosen: str = "") -> Any:
    """Return the answer to a person's request, in a browser of its own that chose a project."""
    client = Client()
    client.force_login(world.users[name])
    if chosen:
        client.cookies["project"] = chosen
    return client.generic(method, address)


@pytest.fixture
def full(world: World) -> World:
    """Return the projects with a row of ``quokka`` in every table."""
    put_alarm(world)
    world.fill_tables()
    return world


def test_every_kind_of_row_is_there(full: World) -> None:
    """Each table with a project has a row of ``quokka``: a new one is in these tests by itself."""
    assert [name for name, content in rows().items() if not content] == []


def _is_named(page: tuple[str, str]) -> bool:
    address = page[1]
    return any(word in address for word in (SECRET, SECRET.upper(), str(NUMBER)))


@pytest.mark.parametrize("role", [*BY_ROLE, ADMINISTRATOR])
def test_pages_answer_as_if_there_were_nothing(full: World, role: str) -> None:
    """Each address with each method; what a page of one's own shows has nothing of ``quokka``.

    The cookie of the chosen project names ``quokka``, too. An administrator sees the names of all
    projects on *Projects*, and what administrators do on the audit of the server: no more.
    """
    before, wrong = rows(), []
    # what a refused request names is in one's own audit, so these come last
    for name, address in sorted(addresses(full), key=_is_named):
        for method in PAGES[name]:
            theirs = seen(ask(full, role, method, address, SECRET))
            if _is_named((name, address)):
                none = seen(ask(full, role, method, missing(address), MISSING))
                if words := difference(theirs, none):
                    wrong.append((name, method, words))
            elif name not in OF_SERVER and SECRET in theirs:
                wrong.append((name, method, theirs[theirs.index(SECRET) - 60 :][:120]))
    assert wrong == []
    assert rows() == before


def test_a_thing_of_the_same_name_shows_nothing_of_the_other(full: World) -> None:
    """Both projects have a state machine and an execution called ``twin``."""
    wrong = []
    for name, route in ROUTES.items():
        if "<str:machine_name>" in route and name not in OPEN and "GET" in PAGES[name]:
            address = filled(route, TWIN).replace(str(NUMBER), "1")
            text = seen(ask(full, "owner", "GET", address))
            if SECRET in text or ACCOUNT in text:
                wrong.append((name, text[:100]))
    assert wrong == []
