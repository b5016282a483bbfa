"""What may an execution do that calls Step Functions: no more than its editor and its starter."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import connection

from console import access, execution_rights
from console.db.audit import Actor
from console.features.bulk import store as bulk
from console.features.notifications.store import rules, start_links
from console.features.notifications.web import trigger_views
from console.models import (
    AccessKey,
    AuditEntry,
    Execution,
    MapRun,
    Membership,
    StartLink,
    StateMachine,
    Version,
)
from console.store.executions import redrive, replay
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.machines import machines, versions
from console.store.map_runs import map_runs
from tests.console.store.helpers import PASS, REGION, ROLE, WAIT, create, drain, one, start
from tests.console.worker.nesting import (
    calling,
    machine_of,
    members,
    outcome,
    started,
    starting,
    worked,
)
from tests.features.notifications.relay import carry_all

if TYPE_CHECKING:
    from console.models import Project

REVEAL = {"Definition": {"Type": "Pass", "End": True}, "RoleArn": ROLE, "RevealSecrets": True}
DENIED = "is not authorized to perform: states:"


@pytest.fixture(autouse=True)
def people(project: Project) -> None:
    """One person of each role."""
    members(project, ana="owner", ed="editor", olga="operator", vic="viewer")


@pytest.fixture
def prey(project: Project) -> StateMachine:
    """A machine of the owner that others would like to change."""
    return machine_of(project, "ana", WAIT, "prey")


def deleting(prey: StateMachine) -> dict[str, Any]:
    """Return a machine that deletes another one."""
    return calling("deleteStateMachine", StateMachineArn=prey.arn)


def refused(execution: Execution, action: str) -> bool:
    """Return whether an execution failed since it had not the right, and says who it was."""
    assert execution.status == "FAILED", execution.output
    cause = execution.cause or ""
    assert f"User: {execution_rights.describe_caller(execution)} {DENIED}{action}" in cause
    assert "Status Code: 403" in cause
    return (execution.error or "").endswith(("SfnException", "AWSStepFunctionsException"))


@pytest.mark.parametrize(
    ("editor", "starter", "allowed"),
    [("ana", "ana", True), ("ed", "ana", False), ("ana", "ed", False), ("ed", "olga", False)],
)
def test_secrets_are_revealed_to_owners_only(
    project: Project, editor: str, starter: str, *, allowed: bool
) -> None:
    """To a machine that an owner wrote, in an execution that an owner started."""
    machine = machine_of(project, editor, calling("testState", **REVEAL))
    execution = outcome(machine, starter)
    if allowed:
        assert execution.status == "SUCCEEDED", execution.cause
    else:
        assert refused(execution, "RevealSecrets")


@pytest.mark.parametrize(
    ("editor", "starter", "allowed"),
    [("ed", "ed", True), ("ana", "ed", True), ("ana", "olga", False), ("ed", "vic", False)],
)
def test_an_execution_deletes_what_both_might(
    project: Project, prey: StateMachine, editor: str, starter: str, *, allowed: bool
) -> None:
    """The lesser of the two counts, whoever owns the project's oldest key."""
    owner = get_user_model().objects.get(username="ana")
    access.create_access_key(owner, project)
    execution = outcome(machine_of(project, editor, deleting(prey)), starter)
    if allowed:
        assert execution.status == "SUCCEEDED", execution.cause
    else:
        assert refused(execution, "DeleteStateMachine")
    assert StateMachine.objects.filter(pk=prey.pk).exists() != allowed


def test_the_audit_says_which_execution_and_who_started_it(
    project: Project, prey: StateMachine
) -> None:
    """The name is a person's, the execution stands beside it; no key was used."""
    execution = outcome(machine_of(project, "ana", deleting(prey)), "ed")
    entry = AuditEntry.objects.get(action="DeleteStateMachine")
    assert (entry.actor, entry.execution, entry.key_id) == ("ed", execution.arn, "")
    assert entry.who == f"execution {execution.arn}, started by ed"


def test_nothing_hangs_on_a_key(project: Project) -> None:
    """The owner's key is disabled, then gone; there may never have been one."""
    owner = get_user_model().objects.get(username="ana")
    key = access.create_access_key(owner, project)
    child = machine_of(project, "ana", PASS, "child")
    machine = machine_of(project, "ed", starting(child))
    AccessKey.objects.filter(pk=key.pk).update(disabled_ms=1)
    assert outcome(machine, "olga").status == "SUCCEEDED"
    AccessKey.objects.all().delete()
    assert outcome(machine, "olga").status == "SUCCEEDED"


@pytest.mark.parametrize("who", ["ed", "olga"])
@pytest.mark.parametrize("way", ["removed", "disabled", "viewer"])
def test_rights_are_those_of_now(project: Project, who: str, way: str) -> None:
    """Somebody lost them after the start: the editor or the starter."""
    child = machine_of(project, "ana", PASS, "child")
    waiting = started(machine_of(project, "ed", starting(child)), "olga")
    membership = Membership.objects.filter(user__username=who)
    if way == "removed":
        membership.delete()
    elif way == "disabled":
        get_user_model().objects.filter(username=who).update(is_active=False)
    else:
        membership.update(role="viewer")
    assert refused(worked(waiting), "StartExecution")


def test_a_child_has_the_rights_of_its_parent(project: Project, prey: StateMachine) -> None:
    """An operator cannot reach through a machine of the owner that starts another of the owner."""
    child = machine_of(project, "ana", deleting(prey), "child")
    machine = machine_of(project, "ana", starting(child), "parent")
    assert outcome(machine, "olga").status == "SUCCEEDED"
    execution = drain(Execution.objects.get(state_machine=child))
    assert json.loads(str(execution.acting_for)) == ["ana", "olga"]
    assert (execution.started_by, execution.depth) == ("olga", 1)
    assert refused(worked(execution), "DeleteStateMachine")


def test_the_children_of_a_map_run_inherit(project: Project) -> None:
    """Also when they are redriven by somebody of less rights."""
    definition = one(
        "M",
        Type="Map",
        ItemsPath="$.items",
        ItemProcessor={
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "F",
            "States": {"F": {"Type": "Fail"}},
        },
    )
    machine = machine_of(project, "ed", definition)
    parent = start_execution(machine, input='{"items":[1]}', actor=Actor("ana"))
    drain(parent)
    number = map_runs.begin_map_run(parent.pk, parent.taskrow_set.get().task)
    assert number is not None
    assert map_runs.advance_map_run(number) in (True, False)
    child = Execution.objects.get(map_run=number)
    assert (child.edited_by, child.acting_for) == ('["ed"]', '["ana"]')
    drain(child)
    map_runs.advance_map_run(number)
    drain(parent)
    redrive.redrive_execution(Execution.objects.get(pk=parent.pk), actor=Actor("olga"))
    drain(parent)
    while map_runs.advance_map_run(number):
        pass
    assert MapRun.objects.get().redrive_count == 1
    assert Execution.objects.get(pk=child.pk).acting_for == '["ana", "olga"]'


def test_who_redrives_counts_as_a_starter(project: Project, prey: StateMachine) -> None:
    """An operator redrives what the owner started, and it may no more what it might."""
    machine = machine_of(project, "ana", deleting(prey))
    parent = started(machine, "ana")
    stop_execution(parent)
    redrive.redrive_execution(Execution.objects.get(pk=parent.pk), actor=Actor("olga"))
    drain(parent)
    assert refused(worked(parent), "DeleteStateMachine")


def test_a_replay_keeps_who_wrote_what_it_runs(project: Project, prey: StateMachine) -> None:
    """The owner repeats an execution of an editor's text, after saving a text of their own."""
    machine = machine_of(project, "ed", calling("testState", **REVEAL))
    origin = outcome(machine, "ana")
    machines.update_machine(machine, definition=json.dumps(deleting(prey)), actor=Actor("ana"))
    again = replay.start_replay(origin, "Call", input="{}", actor=Actor("ana"))
    assert refused(worked(drain(again)), "RevealSecrets")
    origin.state_machine = StateMachine.objects.get(pk=machine.pk)
    changed = replay.start_replay(origin, "Call", input="{}", changed=True, actor=Actor("ana"))
    assert worked(drain(changed)).status == "SUCCEEDED"


def test_only_who_saves_a_text_becomes_its_editor(project: Project) -> None:
    """An owner who switches logging on does not lend an editor's text their rights."""
    machine = machine_of(project, "ed", WAIT)
    changed = machines.update_machine(machine, logging='{"level":"ALL"}', actor=Actor("ana"))
    assert changed.edited_by == '["ed"]'
    version = versions.publish_version(changed, actor=Actor("ana"))
    assert version.edited_by == '["ed"]'
    changed = machines.update_machine(machine, definition=json.dumps(PASS), actor=Actor("ana"))
    assert changed.edited_by == '["ana"]'
    execution = start_execution(changed, version=version, input="{}", actor=Actor("ana"))
    assert execution.edited_by == '["ed"]'


def test_a_machine_that_an_execution_made_is_of_all_it_depends_on(project: Project) -> None:
    """Else an editor would have the owner's execution make a machine in the owner's name."""
    text = json.dumps(calling("testState", **REVEAL))
    creating = calling("createStateMachine", Name="made", Definition=text, RoleArn=ROLE)
    assert outcome(machine_of(project, "ed", creating), "ana").status == "SUCCEEDED"
    machine = StateMachine.objects.get(name="made")
    assert json.loads(machine.edited_by) == ["ana", "ed"]
    assert refused(outcome(machine, "ana"), "RevealSecrets")


def test_a_rule_starts_as_who_last_changed_it(project: Project, prey: StateMachine) -> None:
    """Who gives the owner's rule another target starts it in their own name."""
    machine = machine_of(project, "ana", deleting(prey))
    pattern = json.dumps({"detail": {"stateMachineArn": [{"suffix": ":source"}]}})
    rules.put_rule(project, REGION, "rule", pattern=pattern, actor=Actor("ana"))
    rules.put_targets(project, REGION, "rule", [{"Id": "1", "Arn": machine.arn}], Actor("olga"))
    start(create(project, WAIT, "source"))
    _deliver()
    execution = drain(Execution.objects.get(state_machine=machine))
    assert (execution.started_by, execution.acting_for) == ("rule rule", '["olga"]')
    assert refused(worked(execution), "DeleteStateMachine")


def test_a_schedule_of_somebody_who_left_has_no_rights(project: Project) -> None:
    """It goes on starting; what it starts may call nothing any more."""
    child = machine_of(project, "ana", PASS, "child")
    machine = machine_of(project, "ana", starting(child), "parent")
    rule = rules.put_rule(project, REGION, "rule", schedule="rate(1 minute)", actor=Actor("ed"))
    rules.put_targets(project, REGION, "rule", [{"Id": "1", "Arn": machine.arn}], Actor("ed"))
    type(rule).objects.update(next_ms=1)
    Membership.objects.filter(user__username="ed").delete()
    _deliver()
    execution = drain(Execution.objects.get(state_machine=machine))
    assert refused(worked(execution), "StartExecution")


def _deliver() -> None:
    from console.features.notifications.store import deliveries, routing

    deliveries.fire_due()
    while routing.route_events():
        pass
    carry_all()


def test_a_start_link_acts_as_who_made_it(project: Project, prey: StateMachine) -> None:
    """Whoever has the link has no more rights than they."""
    machine = machine_of(project, "ana", deleting(prey))
    link, _ = start_links.create_link(machine, "shop", Actor("olga"))
    link = StartLink.objects.select_related("machine__project").get(pk=link.pk)
    execution = drain(trigger_views._start_execution(link, "{}", None))
    assert (execution.started_by, execution.acting_for) == ("link shop", '["olga"]')
    assert refused(worked(execution), "DeleteStateMachine")


def test_a_bulk_start_acts_as_who_asked_for_it(project: Project) -> None:
    """Each of the new executions has the starter of the job."""
    origin = start(machine_of(project, "ed", PASS))
    planned = bulk.plan_job(project, "start", [drain(origin).pk])
    job = bulk.create_job(planned, project, Actor("olga"))
    while bulk.work_on_job(job.pk):
        pass
    again = Execution.objects.exclude(pk=origin.pk).get()
    assert (again.edited_by, again.acting_for) == ('["ed"]', '["olga"]')


@pytest.mark.parametrize(
    ("action", "allowed"), [("StopExecution", True), ("deleteStateMachine", False)]
)
def test_an_unknown_editor_or_starter_is_an_operator(
    project: Project, prey: StateMachine, action: str, *, allowed: bool
) -> None:
    """So are samples, imports from the command line, and rows of an earlier release."""
    target = started(prey)
    parameters = {"ExecutionArn": target.arn} if allowed else {"StateMachineArn": prey.arn}
    action = action[0].lower() + action[1:]
    execution = started(machine_of(project, "", calling(action, **parameters)), "ana")
    Execution.objects.filter(pk=execution.pk).update(edited_by="", acting_for="", started_by="ana")
    assert (worked(execution).status == "SUCCEEDED") == allowed


def test_machines_of_an_earlier_release_have_the_editor_of_the_audit(project: Project) -> None:
    """A version the one of its time; where the audit names no user it is unknown."""
    machine = machine_of(project, "ana", PASS, "old")
    AuditEntry.objects.update(at_ms=1)
    version = versions.publish_version(machine, actor=Actor("ana"))
    Version.objects.filter(pk=version.pk).update(created_ms=2)
    machines.update_machine(machine, definition=json.dumps(WAIT), actor=Actor("ed"))
    machine_of(project, "manage.py", PASS, "imported")
    StateMachine.objects.update(edited_by="")
    Version.objects.update(edited_by="")
    migration = importlib.import_module("console.migrations.0035_fill_editors")
    with connection.schema_editor() as editor:
        migration.fill(apps, editor)
    editors = dict(StateMachine.objects.values_list("name", "edited_by"))
    assert (editors["old"], editors["imported"]) == ('["ed"]', "")
    assert Version.objects.get().edited_by == '["ana"]'


def test_another_project_is_out_of_reach(project: Project) -> None:
    """Rights are those in the execution's own project, and so are its machines."""
    other = type(project).objects.create(name="other", account_id="210987654321")
    theirs = machine_of(other, "ana", PASS, "theirs")
    execution = outcome(machine_of(project, "ana", starting(theirs)), "ana")
    assert execution.error == "StepFunctions.StateMachineDoesNotExistException"
    assert not Execution.objects.filter(project=other).exists()
