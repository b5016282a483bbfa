"""Tasks act on the rules, schedules, alarms, logs and executions of this server.

A target for that very service sends its calls elsewhere; one for all services, ``"*"``, does not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.db.audit import Actor
from console.features.alarms.models import Alarm
from console.features.targets import explain
from console.integrations import targets
from console.models import EventRule, Execution, Membership, OutboxEvent, Role, StateMachine
from console.store.executions.start import start_execution
from console.worker import own_calls
from tests.console.store.helpers import PASS, create, ended, one
from tests.console.worker.nesting import machine_of, members
from tests.features.notifications.relay import rule_to
from tests.waiting import wait_until

if TYPE_CHECKING:
    from console.models import Project
    from console.worker import Embedded

ROLE = "arn:aws:iam::123456789012:role/test"
ORDERS = json.dumps({"source": ["shop.orders"]})
ENTRY = {"Source": "shop.orders", "DetailType": "placed", "Detail": {"id": 7}}
NOBODY = {"endpoint_url": "http://127.0.0.1:9", "access_key_id": "x", "secret_access_key": "x"}
SCHEDULE = {
    "Name": "nightly",
    "ScheduleExpression": "rate(1 day)",
    "FlexibleTimeWindow": {"Mode": "OFF"},
}


@pytest.fixture(autouse=True)
def _everything_else_goes_to_an_emulator(settings: Any) -> None:
    settings.STATEYARD_TARGETS = {"*": NOBODY}


def calling(action: str, **parameters: Any) -> dict[str, Any]:
    """Return a machine with one Task."""
    resource = f"arn:aws:states:::{action}"
    return one("Call", Type="Task", Resource=resource, Parameters=parameters)


def run(project: Project, action: str, **parameters: Any) -> Execution:
    """Run a Task that calls a service, for an editor."""
    name = f"caller-{StateMachine.objects.count()}"
    if not Membership.objects.filter(project=project).exists():
        members(project, ana=Role.EDITOR)
    machine = machine_of(project, "ana", calling(action, **parameters), name)
    return ended(start_execution(machine, input="{}", actor=Actor("ana")))


def result(execution: Execution) -> Any:
    """Return the result of a success."""
    assert execution.status == "SUCCEEDED", (execution.error, execution.cause)
    return engine.loads(execution.output or "")


@pytest.mark.parametrize("action", ["events:putEvents", "aws-sdk:eventbridge:putEvents"])
def test_an_event_of_a_task_starts_the_machine_of_a_rule_once(
    project: Project, worker: Embedded, action: str
) -> None:
    """Though there is a target for all services."""
    del worker
    receiver = create(project, PASS, "receiver")
    rule_to(project, receiver.arn, pattern=ORDERS)
    answer = result(run(project, action, Entries=[ENTRY | {"Time": "2026-01-02T03:04:05Z"}]))
    assert answer["FailedEntryCount"] == 0
    started = Execution.objects.filter(state_machine=receiver)
    wait_until(lambda: [row.status for row in started.all()] == ["SUCCEEDED"])
    event = json.loads(started[0].input)
    assert (event["source"], event["detail"]) == ("shop.orders", {"id": 7})
    assert event["time"] == "2026-01-02T03:04:05Z"


def test_an_entry_that_is_refused_fails_the_task(project: Project, worker: Embedded) -> None:
    """As with EventBridge itself."""
    del worker
    execution = run(project, "events:putEvents", Entries=[ENTRY | {"Detail": "no JSON"}])
    assert (execution.status, execution.error) == ("FAILED", "EventBridge.FailedEntry")


def test_schedules_alarms_and_rules_are_those_of_this_server(
    project: Project, worker: Embedded
) -> None:
    """Made and read by Tasks, with the names of the SDK."""
    del worker
    receiver = create(project, PASS, "receiver")
    target = {"Arn": receiver.arn, "RoleArn": ROLE, "Input": {"a": 1}}
    answer = result(run(project, "aws-sdk:scheduler:createSchedule", **SCHEDULE, Target=target))
    assert answer["ScheduleArn"].endswith(":schedule/default/nightly")
    schedule = result(run(project, "aws-sdk:scheduler:getSchedule", Name="nightly"))
    assert schedule["Target"]["Input"] == '{"a":1}'
    assert schedule["CreationDate"].endswith("Z")
    listed = result(run(project, "aws-sdk:scheduler:listSchedules", GroupName="default"))
    assert [schedule["Name"] for schedule in listed["Schedules"]] == ["nightly"]
    gone = run(project, "aws-sdk:scheduler:deleteSchedule", Name="nobody")
    assert gone.error == "Scheduler.ResourceNotFoundException"

    rule = {"Name": "placed", "EventPattern": ORDERS}
    assert result(run(project, "aws-sdk:eventbridge:putRule", **rule))["RuleArn"]
    assert EventRule.objects.filter(project=project, name="placed").exists()

    alarm = {
        "AlarmName": "failures",
        "Namespace": "AWS/States",
        "MetricName": "ExecutionsFailed",
        "Dimensions": [{"Name": "StateMachineArn", "Value": receiver.arn}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    }
    result(run(project, "aws-sdk:cloudwatch:putMetricAlarm", **alarm))
    assert Alarm.objects.filter(project=project, name="failures").exists()
    alarms = result(run(project, "aws-sdk:cloudwatch:describeAlarms"))
    assert [alarm["AlarmName"] for alarm in alarms["MetricAlarms"]] == ["failures"]


def test_logs_are_those_of_this_server(project: Project, worker: Embedded) -> None:
    """A group that a Task makes is there for the next one."""
    del worker
    result(run(project, "aws-sdk:cloudwatchlogs:createLogGroup", LogGroupName="/orders"))
    answer = result(run(project, "aws-sdk:cloudwatchlogs:describeLogGroups"))
    assert "/orders" in [group["LogGroupName"] for group in answer["LogGroups"]]


@pytest.mark.parametrize(
    ("action", "parameters", "error", "words"),
    [
        (
            "aws-sdk:cloudwatch:putMetricData",
            {"Namespace": "n"},
            "CloudWatch.CloudWatchException",
            "does not serve PutMetricData of 'cloudwatch'",
        ),
        (
            "aws-sdk:eventbridge:createEventBus",
            {"Name": "b"},
            "EventBridge.EventBridgeException",
            "does not serve CreateEventBus of 'events'",
        ),
        (
            "aws-sdk:scheduler:listTagsForResource",
            {"ResourceArn": "arn:aws:scheduler:us-east-1:123456789012:schedule-group/default"},
            "",
            "",
        ),
    ],
)
def test_an_action_that_is_not_served_is_named(
    project: Project, worker: Embedded, action: str, parameters: Any, error: str, words: str
) -> None:
    """It goes nowhere else; one that is served answers."""
    del worker
    execution = run(project, action, **parameters)
    if error:
        assert execution.error == error
        assert words in str(execution.cause)
    else:
        assert execution.status == "SUCCEEDED", execution.cause


def test_a_target_for_that_very_service_is_called(
    project: Project, worker: Embedded, settings: Any
) -> None:
    """Nobody listens there, and no event of this server is written."""
    del worker
    settings.STATEYARD_TARGETS = {"events": NOBODY, "scheduler": NOBODY}
    rule_to(project, create(project, PASS, "receiver").arn, pattern=ORDERS)
    execution = run(project, "events:putEvents", Entries=[ENTRY])
    assert execution.error == "EventBridge.SdkClientException"
    assert not OutboxEvent.objects.filter(body__contains="shop.orders").exists()
    listed = run(project, "aws-sdk:scheduler:listSchedules")
    assert listed.error == "Scheduler.SdkClientException"


@pytest.mark.parametrize(
    ("role", "action", "allowed"),
    [
        (Role.VIEWER, "events:putEvents", False),
        (Role.OPERATOR, "events:putEvents", True),
        (Role.OPERATOR, "aws-sdk:eventbridge:putRule", False),
        (Role.EDITOR, "aws-sdk:eventbridge:putRule", True),
    ],
)
def test_an_execution_has_the_rights_of_its_people(
    project: Project, worker: Embedded, role: str, action: str, allowed: bool
) -> None:
    """As for calls of Step Functions: the least of who edited the machine and who started it."""
    del worker
    members(project, ana=role, bob=Role.OWNER)
    parameters: dict[str, Any] = {"Entries": [ENTRY]}
    if action.endswith("putRule"):
        parameters = {"Name": "placed", "EventPattern": ORDERS}
    machine = machine_of(project, "bob", calling(action, **parameters))
    done = ended(start_execution(machine, input="{}", actor=Actor("ana")))
    assert (done.status == "SUCCEEDED") is allowed, done.cause
    if not allowed:
        assert "is not authorized to perform: events:P" in str(done.cause)


def test_each_service_of_this_server_can_be_called_by_its_resource() -> None:
    """The table of Resources has each of them, by the name that find_operation knows."""
    assert set(own_calls.OWN_SERVICES.values()) == set(targets.OWN_SERVICES)


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ("events:putEvents", ""),
        ("aws-sdk:scheduler:createSchedule", ""),
        ("aws-sdk:cloudwatchlogs:filterLogEvents", ""),
        ("aws-sdk:sfn:listExecutions", ""),
        ("aws-sdk:cloudwatch:putMetricData", "does not serve PutMetricData"),
    ],
)
def test_where_a_call_goes_is_told(settings: Any, action: str, problem: str) -> None:
    """The page *Calls* says that it stays here, or that nothing takes it."""
    resource = engine.parse_resource(f"arn:aws:states:::{action}")
    assert resource is not None
    plan = explain.plan_call(resource, {}, targets.NOBODY)
    assert plan.where == "this server"
    assert problem in plan.problem
    assert bool(plan.problem) is bool(problem)
    settings.STATEYARD_TARGETS = dict.fromkeys(targets.OWN_SERVICES, NOBODY)
    plan = explain.plan_call(resource, {}, targets.NOBODY)
    assert (plan.where, plan.problem) == ("http://127.0.0.1:9", "")


def test_the_page_of_targets_tells_what_stays_here(
    project: Project, client: Any, settings: Any, django_user_model: Any
) -> None:
    """A service that the settings send elsewhere is not among those."""
    user = django_user_model.objects.create_user("ana")
    Membership.objects.create(project=project, user=user, role=Role.VIEWER)
    client.force_login(user)
    settings.STATEYARD_TARGETS = {"*": NOBODY, "logs": NOBODY}
    page = " ".join(client.get("/targets/").content.decode().split())
    assert "Tasks that call cloudwatch, events, scheduler, stepfunctions act on this server" in page


@pytest.mark.parametrize("action", ["events:putEvents", "aws-sdk:eventbridge:putEvents"])
def test_an_event_for_another_bus_goes_to_the_target_of_all_services(
    project: Project, worker: Embedded, settings: Any, action: str
) -> None:
    """It is not dropped here: nobody listens there, or there is no target."""
    del worker
    other = ENTRY | {"EventBusName": "orders"}
    assert run(project, action, Entries=[other]).error == "EventBridge.SdkClientException"
    mixed = run(project, action, Entries=[ENTRY, other])
    assert mixed.error == "States.Runtime"
    assert "wanted one Task for each" in str(mixed.cause)
    account = project.account_id
    own = ENTRY | {"EventBusName": f"arn:aws:events:us-east-1:{account}:event-bus/default"}
    assert result(run(project, action, Entries=[own]))["FailedEntryCount"] == 0
    settings.STATEYARD_TARGETS = {}
    alone = run(project, action, Entries=[other])
    assert "No target is configured for the service 'events'" in str(alone.cause)
