"""Each role may do exactly what it should: every API action, page address and method.

The two tables here are reviewed by hand and stand apart from the product's own. A new action or
page without an entry fails, and so does an entry of something that is no more.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from console import access
from console.awsapi import asgi, services, shapes
from console.db.audit import Actor
from console.errors import ErrorCode, ServiceError
from console.features.notifications.store import rules, scheduler
from console.models import (
    Activity,
    Alias,
    AuditEntry,
    EventRule,
    EventTarget,
    Execution,
    LogGroup,
    MapRun,
    Membership,
    Project,
    Role,
    StateMachine,
    Tag,
    Version,
)
from console.store.machines import log_groups, tags, versions
from console.store.map_runs import map_runs, map_tasks
from console.store.people import people
from console.store.tasks import activities
from console.web.core.rights import ANYBODY, PAGES, SIGNED_IN
from tests.console.awsapi.world import MAP
from tests.console.store.helpers import ROLE, WAIT, create, drain, start

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1:8083"
ROLES = [str(role) for role in Role]
NOBODY, STRANGER, ADMINISTRATOR = "anonymous", "other project", "administrator"
ASKING = [NOBODY, STRANGER, ADMINISTRATOR, *ROLES]
BY = Actor("owner", "", "test")

API = {
    "viewer": """
        DescribeActivity DescribeExecution DescribeMapRun DescribeStateMachine
        DescribeStateMachineAlias DescribeStateMachineForExecution GetExecutionHistory
        ListActivities ListExecutions ListMapRuns ListStateMachineAliases ListStateMachineVersions
        ListStateMachines ListTagsForResource ValidateStateMachineDefinition
        events:DescribeRule events:ListRuleNamesByTarget events:ListRules
        events:ListTagsForResource events:ListTargetsByRule events:TestEventPattern
        logs:DescribeLogGroups logs:DescribeLogStreams logs:FilterLogEvents logs:GetLogEvents
        monitoring:DescribeAlarms monitoring:DescribeAlarmsForMetric monitoring:GetMetricData
        monitoring:GetMetricStatistics monitoring:ListMetrics
        sts:GetCallerIdentity
        scheduler:GetSchedule scheduler:GetScheduleGroup scheduler:ListScheduleGroups
        scheduler:ListSchedules scheduler:ListTagsForResource
    """,
    "operator": """
        GetActivityTask RedriveExecution SendTaskFailure SendTaskHeartbeat SendTaskSuccess
        StartExecution StartSyncExecution StopExecution TestState UpdateMapRun
        events:PutEvents
    """,
    "editor": """
        CreateActivity CreateStateMachine CreateStateMachineAlias DeleteActivity
        DeleteStateMachine DeleteStateMachineAlias DeleteStateMachineVersion
        PublishStateMachineVersion TagResource UntagResource UpdateStateMachine
        UpdateStateMachineAlias
        events:DeleteRule events:DisableRule events:EnableRule events:PutRule events:PutTargets
        events:RemoveTargets events:TagResource events:UntagResource
        logs:CreateLogGroup logs:DeleteLogGroup
        monitoring:DeleteAlarms monitoring:PutMetricAlarm monitoring:SetAlarmState
        scheduler:CreateSchedule scheduler:CreateScheduleGroup scheduler:DeleteSchedule
        scheduler:DeleteScheduleGroup scheduler:TagResource scheduler:UntagResource
        scheduler:UpdateSchedule
    """,
}
"""Least role -> actions of the API."""
LEAST = {action: role for role, text in API.items() for action in text.split()}

PAGE = {
    (ANYBODY, ANYBODY): """
        login login-link invitation approval api-projects api-settings api-branches api-inputs
        api-next-starts
        second-step password-reset password-reset-link
    """,
    (ANYBODY, None): """
        shared prometheus healthz readyz provider provider-callback api-project
        api-executions-paused api-schedules-paused
    """,
    (None, ANYBODY): """
        start-link reset provider-logout
        api-project-rename api-project-archive api-project-unarchive api-project-delete
        api-branch-key api-branch-failures api-branch-delete api-branch-machines api-branch-deploy
        api-execution-pause api-execution-resume api-execution-start
        api-faults api-next-starts-remove
        api-machine-pause api-machine-resume
        api-schedules-pause api-schedules-resume
    """,
    (
        None,
        SIGNED_IN,
    ): "logout preferences session-end sessions-end branch-delete mail-address-change",
    (SIGNED_IN, None): "projects account",
    (SIGNED_IN, SIGNED_IN): "password second-factor mail-address",
    (ADMINISTRATOR, ADMINISTRATOR): "sign-in",
    (ADMINISTRATOR, None): "server-audit server-audit-csv",
    (None, ADMINISTRATOR): """
        project-create project-rename project-archive project-unarchive
        project-delete
    """,
    ("viewer", None): """
        alarms arn audit audit-csv chart-executions charts charts-csv charts-delta compare
        connect
        definition delta diff download event event-payload events events-csv events-json execution
        execution-export execution-scenario execution-svg executions executions-updates
        failures family grid hot-state hot-states insights machine machine-export machine-logs
        machine-mermaid
        machine-metrics
        machine-svg machine-updates machines map-run-delta members-former moment operations
        outline overview own-targets resilience
        overview-updates palette payload ran-definition ran-text schedule-times
        step targets tasks-updates view-count
        faults
    """,
    ("viewer", "viewer"): "key-limits keys",
    (None, "viewer"): "key key-rotate columns",
    ("viewer", "operator"): "bulk bulk-job import inputs map-run task tasks",
    ("operator", "operator"): "start replay reproduce stop pause redrive share test send-all-again",
    (None, "operator"): """
        reveal note remark resume import-delete views send-again rule-run schedule-run
    """,
    ("viewer", "editor"): """
        machine-settings calls versions triggers activities activity notifications schedules rule
        project-settings machine-alarms alarm schedule next-starts
    """,
    ("editor", "editor"): """
        new edit delete rule-delete schedule-delete dead-letters-delete schedules-pause
        schedules-resume breakpoints
    """,
    (None, "editor"): """
        approval-link changes check draft edit-graph new-draft sample-start start-link-revoke
        rule-switch schedule-switch target-add target-remove target-test
    """,
    ("viewer", "owner"): "members quotas denied-actions retention mocks halted-lines role",
    ("owner", None): "settings-export",
    ("owner", "owner"): "settings-file invite service-accounts own-target",
    (None, "owner"): """
        second-factor-rule member-remove invitation-revoke own-target-remove own-target-test
    """,
}
"""Least role to GET and to POST, None: the method is not taken -> names of addresses."""
CELLS = {name: dict(zip(("GET", "POST"), pair, strict=True)) for pair, text in PAGE.items()
         for name in text.split()}  # fmt: skip


@pytest.fixture
def persons(project: Project, django_user_model: Any) -> Iterator[dict[str, Any]]:
    """Return one person a role in the project, and the owner of another one."""
    access._principals.clear()
    other = Project.objects.create(name="other", account_id="999999999999")
    users = {}
    for name in (*ROLES, STRANGER):
        users[name] = django_user_model.objects.create_user(name)
        role, where = (Role.OWNER, other) if name == STRANGER else (name, project)
        Membership.objects.create(project=where, user=users[name], role=role)
    # an administrator of the server who is a member of no project
    users[ADMINISTRATOR] = django_user_model.objects.create_user(ADMINISTRATOR, is_superuser=True)
    yield users
    access._principals.clear()


# -- the API ---------------------------------------------------------------------------------------


def served() -> list[tuple[services.ApiService, str]]:
    """Return every action of every service that is answered."""
    return [(service, action) for service in services.SERVICES for action in service.handlers]


def signed_request(
    service: services.ApiService, action: str, key_id: str, **params: Any
) -> AWSRequest:
    """Return a call that is signed with a key, unless that is ""."""
    headers = {
        "Content-Type": service.content_type,
        "X-Amz-Target": f"{service.target}.{action}",
        "Host": HOST,
    }
    request = AWSRequest(
        "POST", f"http://{HOST}/", data=json.dumps(params).encode(), headers=headers
    )
    if key_id:
        credentials = Credentials(key_id, access.secret_for(key_id))
        SigV4Auth(credentials, service.scope, "us-east-1").add_auth(request)
    return request


def send(service: services.ApiService, action: str, key_id: str, **params: Any) -> Any:
    """Hand a call to the edge; raise its error."""
    request = signed_request(service, action, key_id, **params)
    lower = {name.lower(): [value] for name, value in request.headers.items()}
    return asgi.answer_call({"path": "/"}, lower, request.data, "request")


def test_every_action_of_the_service_models_has_its_cell() -> None:
    """The reviewed table, the product's and what is served name the same actions."""
    names = {service.permission(action) for service, action in served()}
    for other in (services.STS, services.SCHEDULER):
        names |= {other.permission(action) for action in other.handlers}
    assert set(LEAST) == names
    for name, role in LEAST.items():
        assert access.least_role(name) == role, name


@pytest.mark.slow
def test_an_action_that_is_not_served_is_refused(persons: dict[str, Any], project: Project) -> None:
    """What the service models have beyond what is answered reaches nothing, for an owner either."""
    key, _ = people.new_key(persons["owner"], project, BY)
    for service in services.SERVICES:
        for action in set(shapes.service_model(service.name).operation_names) - set(
            service.handlers
        ):
            with pytest.raises(ServiceError) as caught:
                send(service, action, key.key_id)
            assert caught.value.code == "UnknownOperationException", action


@pytest.mark.parametrize("role", ROLES)
def test_an_unlisted_action_is_refused(
    persons: dict[str, Any], project: Project, role: str
) -> None:
    """Who adds an action and forgets its right gets a refusal, whatever the role."""
    principal = access.Principal(persons[role], project, role)
    for action in ("ExportEverything", "events:Unheard", ""):
        with pytest.raises(access.Denied):
            access.authorize(principal, action)
        assert not access.is_still_allowed(role, project, action)


@pytest.mark.parametrize("role", [NOBODY, *ROLES])
def test_each_role_may_call_what_its_cell_says(
    persons: dict[str, Any], project: Project, role: str
) -> None:
    """A call without parameters passes the door or does not; behind it, it may well be wrong."""
    key = "" if role == NOBODY else people.new_key(persons[role], project, BY)[0].key_id
    wrong = {}
    for service, action in served():
        name = service.permission(action)
        expected = role != NOBODY and ROLES.index(role) >= ROLES.index(LEAST[name])
        try:
            send(service, action, key)
            allowed = True
        except ServiceError as error:
            allowed = error.code not in (
                ErrorCode.AccessDeniedException,
                ErrorCode.MissingAuthenticationTokenException,
            )
        if allowed != expected:
            wrong[name] = allowed
    assert wrong == {}


MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:machine"
NAMED = {
    "stateMachineAliasArn": f"{MACHINE}:live",
    "stateMachineVersionArn": f"{MACHINE}:1",
    "stateMachineArn": MACHINE,
    "executionArn": "arn:aws:states:us-east-1:123456789012:execution:machine:x",
    "activityArn": "arn:aws:states:us-east-1:123456789012:activity:work",
    "mapRunArn": "",  # which ``things`` fills in
    "resourceArn": MACHINE,
    "Name": "rule",
    "Rule": "rule",
    "logGroupName": "/ours",
}
"""Parameter -> our thing."""
FURTHER: dict[str, dict[str, Any]] = {
    "CreateStateMachineAlias": {
        "name": "theirs",
        "routingConfiguration": [{"stateMachineVersionArn": f"{MACHINE}:1", "weight": 100}],
    },
    "ListRuleNamesByTarget": {"TargetArn": MACHINE},
    "RemoveTargets": {"Ids": ["t"]},
    "PutTargets": {"Targets": [{"Id": "t", "Arn": MACHINE}]},
    "GetLogEvents": {"logStreamName": "s"},
    "TagResource": {"tags": [{"key": "k", "value": "theirs"}]},
    "UntagResource": {"tagKeys": ["k"]},
    "UpdateMapRun": {"maxConcurrency": 1},
    "UpdateStateMachine": {"roleArn": ROLE},
    "UpdateStateMachineAlias": {"description": "d"},
}
"""What an action needs beside the thing it acts on."""
OWN_NAME = {"PutRule", "CreateLogGroup"}
"""What makes a thing of that name in one's own project."""


MISSING = ("DoesNotExist", "NotFound", "NotFoundException", "InvalidArn")
SILENT = {"DeleteActivity", "DeleteRule", "DeleteStateMachine", "DeleteStateMachineVersion"}
"""What answers for a thing that is not there as if it had done its work."""


@pytest.fixture
def things(project: Project) -> None:
    """Make something of most kinds in the project."""
    machine = create(project, WAIT)
    start(machine, name="x")
    version = versions.publish_version(machine)
    route = [{"stateMachineVersionArn": version.arn, "weight": 100}]
    versions.create_alias(project, "live", route)
    drain(start(create(project, MAP, "mapper"), [1, 2], name="m"))
    assert map_runs.begin_map_run(*map_tasks.scheduled_maps()[0])
    NAMED["mapRunArn"] = MapRun.objects.get().arn
    activities.create_activity(project, "us-east-1", "work")
    tags.put_tags(MACHINE, {"k": "ours"})
    rules.put_rule(project, "us-east-1", "rule", pattern=json.dumps({"source": ["x"]}))
    nightly = scheduler.ScheduleKey(project, "us-east-1", "default", "nightly")
    daily = scheduler.ScheduleSettings("rate(1 day)", {"Arn": MACHINE, "RoleArn": ROLE})
    scheduler.create_schedule(nightly, daily)
    target = {"Id": "t", "Arn": MACHINE, "RoleArn": ROLE}
    rules.put_targets(project, "us-east-1", "rule", [target])
    log_groups.create_group(project, "us-east-1", "/ours", BY)


def rows() -> list[Any]:
    """Return everything that ``things`` made, as it is now."""
    models: list[Any] = [StateMachine, Version, Alias, Tag, Activity]
    models += [Execution, MapRun, EventRule, EventTarget, LogGroup]
    return [list(model.objects.order_by("pk").values()) for model in models]


def test_nothing_of_another_project_is_answered_or_changed(
    persons: dict[str, Any], things: None
) -> None:
    """The owner of another project names our things, and they are as missing as nobody's."""
    key = people.new_key(persons[STRANGER], Project.objects.get(name="other"), BY)[0].key_id
    before = rows()
    told = {}
    for service, action in served():
        shape = shapes.service_model(service.name).operation_model(action).input_shape
        naming = [member for member in NAMED if member in shape.members]
        if not naming or action in OWN_NAME:
            continue
        params = {naming[0]: NAMED[naming[0]], **FURTHER.get(action, {})}
        try:
            told[action] = json.dumps(send(service, action, key, **params))
        except ServiceError as error:
            told[action] = error.code
    answered = {action for action, text in told.items() if not text.endswith(MISSING)}
    assert answered == SILENT
    assert all("123456789012" not in told[action] for action in answered)
    assert rows() == before


# -- pages -----------------------------------------------------------------------------------------


def addresses(patterns: list[Any], before: str = "/") -> Iterator[tuple[str, str]]:
    """Yield the name and the route of every page there is."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, before + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            yield str(pattern.name), before + str(pattern.pattern)


ROUTES = dict(addresses(get_resolver().url_patterns))
FILLED = {
    "map-runs/<number:number>": "map-runs/3",
    "<str:machine_name>": "machine",
    "<str:execution_name>": "x",
    "<str:activity_name>": "work",
    "<str:rule_name>": "rule",
    "<str:schedule_group>": "default",
    "<str:schedule_name>": "nightly",
    "<str:key>": "AKIANOBODY",
    "<str:project_name>": "payments",
    "<str:token>": "nonsense",
    "<str:uidb64>": "MQ",
    "<str:secret>": "nonsense",
    "<str:kind>": "graph.svg",
    "<str:tool>": "sam",
    "<str:provider_id>": "corp",
    "<path:arn>": NAMED["executionArn"],
    "<number:number>": "1",
}


FORMER = {"arn", "remark"}
"""Addresses that redirect to the address of the page, which then asks for the right."""


def filled(route: str) -> str:
    """Return an address of a route that names our things."""
    field = "input" if route.endswith(".json") else "parameters"
    route = route.replace("<str:field>", field)
    for part, value in FILLED.items():
        route = route.replace(part, value)
    assert "<" not in route, route
    return route


def test_every_address_has_its_cell() -> None:
    """The reviewed table, the product's and the router name the same pages and methods."""
    assert len(ROUTES) == sum(1 for _ in addresses(get_resolver().url_patterns)), "a name twice"
    assert set(CELLS) == set(ROUTES) == set(PAGES)
    for name, methods in PAGES.items():
        assert set(methods) == {method for method, role in CELLS[name].items() if role}, name
        for method, actions in methods.items():
            least = [action if action in (ANYBODY, SIGNED_IN) else access.least_role(action)
                     for action in actions]  # fmt: skip
            assert set(least) == {CELLS[name][method]}, (name, method)


def test_no_api_ignores_a_parameter(persons: dict[str, Any]) -> None:
    """Each path under ``/api/`` refuses an unknown parameter, before it does anything."""
    del persons
    paths = [filled(route) for route in ROUTES.values() if route.startswith("/api/")]
    assert paths
    for path in paths:
        for method in ("GET", "POST"):
            answer = Client().generic(method, f"{path}?nonsense=1")
            if answer.status_code != 405:
                assert answer.content.startswith(b"nonsense is not a query parameter"), path


METHODS: dict[str, tuple[str, ...]] = dict.fromkeys(ASKING, ("GET", "POST"))
METHODS["owner"] = ("GET", "POST", "PUT", "PATCH", "DELETE")
SESSION_COOKIE = "stateyard_session"


def entered(cell: str, asking: str) -> bool:
    """Return whether a cell of the table lets somebody in."""
    if cell == ANYBODY:
        return True
    if asking == NOBODY:
        return False
    if ADMINISTRATOR in (asking, cell):
        return cell in (SIGNED_IN, asking)
    role = "owner" if asking == STRANGER else asking
    return cell == SIGNED_IN or ROLES.index(role) >= ROLES.index(cell)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asking",
    [
        pytest.param(asking, marks=pytest.mark.postgres_too)
        if asking in ("owner", ADMINISTRATOR)
        else asking
        for asking in ASKING
    ],
)
def test_each_address_lets_in_whom_its_cell_says(
    persons: dict[str, Any], things: None, asking: str
) -> None:
    """Every address, with every method: a login page, a 403, a 405, or whatever the page says."""
    client = Client()
    wrong = {}
    for name, route in sorted(ROUTES.items(), key=lambda item: item[0] == "logout"):
        for method in METHODS[asking]:
            if asking != NOBODY and (name == "logout" or SESSION_COOKIE not in client.cookies):
                client.force_login(persons[asking])
            got = seen(client.generic(method, filled(route)))
            expected = "405"
            if cell := CELLS[name].get(method):
                expected = "in" if entered(cell, asking) else "403"
            if (name, method, asking) == ("operations", "GET", ADMINISTRATOR):
                expected = "in"
            if asking == NOBODY and ANYBODY not in CELLS[name].values():
                expected = "login"
            if name in ("shared", "branch-delete") and got == "403":  # its own: nothing is named
                got = "in"
            if got != expected:
                wrong[name, method] = (got, expected)
    assert wrong == {}
    refused = AuditEntry.objects.filter(action="Refused")
    for of_administrators in ("/projects/", "/sign-in/"):
        refused = refused.exclude(target__startswith=of_administrators)
    assert refused.exists() == (asking in ("viewer", "operator", "editor"))


def seen(answer: Any) -> str:
    """Return what became of a request."""
    if answer.status_code in (403, 405):
        return str(answer.status_code)
    at_login = answer.status_code == 302 and "?next=" in answer["Location"]
    page = answer.resolver_match and answer.resolver_match.url_name
    assert answer.status_code < 500 or page == "readyz"  # on a loaded machine no worker is alive
    return "login" if at_login else "in"


def test_the_pages_of_another_project_are_not_there(persons: dict[str, Any], things: None) -> None:
    """Who owns another project gets 404 for our things, and no page of theirs names them."""
    client = Client()
    before, wrong = rows(), []
    named = ("machine_name", "execution_name", "activity_name", "rule_name")
    for name, route in ROUTES.items():
        client.force_login(persons[STRANGER])  # another page has signed them out
        for method in [verb for verb, cell in CELLS[name].items() if cell not in (None, ANYBODY)]:
            answer = client.generic(method, filled(route))
            theirs = any(f"<str:{parameter}>" in route for parameter in named)
            if theirs and name not in FORMER:
                if answer.status_code != 404:
                    wrong.append((name, method, answer.status_code))
            elif answer.status_code == 200:
                assert b"123456789012" not in answer.getvalue(), (name, method)
    assert not wrong
    changed = [
        row for old, new in zip(before, rows(), strict=True) for row in old if row not in new
    ]
    assert not changed  # their own project has a new state machine of the samples


def test_a_page_that_is_in_no_table_is_refused(
    persons: dict[str, Any], things: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who adds a page and forgets its right gets a refusal, an owner, too."""
    monkeypatch.delitem(PAGES, "machines")
    monkeypatch.delitem(PAGES, "healthz")  # which asks for no login
    client = Client()
    client.force_login(persons["owner"])
    assert client.get("/machines/").status_code == 403
    assert client.get("/machines/machine/").status_code == 200
    assert Client().get("/healthz").status_code == 403


def asked() -> set[str]:
    """Return the actions that the code of the pages asks the right for, as far as it names them."""
    values = set()
    console = Path(access.__file__).parent
    for path in (*(console / "web").rglob("*.py"), *(console / "features").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("require", ".may")):
                conditions = [
                    part.slice if isinstance(part, ast.Subscript) else part
                    for part in ast.walk(node)
                    if isinstance(part, ast.Subscript | ast.Compare)
                ]
                apart = {id(name) for condition in conditions for name in ast.walk(condition)}
                values |= {
                    constant.value
                    for constant in ast.walk(node)
                    if isinstance(constant, ast.Constant) and id(constant) not in apart
                }
    return {value for value in values if isinstance(value, str)}


@pytest.mark.slow
def test_every_right_that_pages_ask_for_is_in_the_table() -> None:
    """A name that nobody wrote down, or a typing mistake, would shut a page for everybody."""
    assert len(asked()) > 20
    assert {action for action in asked() if access.least_role(action) is None} == set()
