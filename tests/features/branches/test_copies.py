"""A branch has what its parent has, under its own account, and nothing of it is at work."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db.audit import Actor
from console.features.branches import store
from console.features.notifications.store import rules, scheduler
from console.features.saved_views import store as saved_views
from console.models import (
    Activity,
    Alias,
    Definition,
    EventRule,
    EventTarget,
    Execution,
    LogGroup,
    LogRoute,
    Project,
    SavedView,
    StateMachine,
    Version,
)
from console.store.machines import log_groups, machines, tags, versions
from console.store.tasks import activities
from tests.console.store.helpers import PASS, REGION, ROLE, create, drain, one, start
from tests.features.branches.conftest import BY

NESTED = one(
    "N",
    Type="Task",
    Resource="arn:aws:states:::states:startExecution.sync:2",
    Parameters={"StateMachineArn": "arn:aws:states:us-east-1:222222222222:stateMachine:plain"},
)


def branch_of(parent: Project, name: str = "feature/x") -> Project:
    """Return the project of a new branch."""
    return store.put_branch(parent, name, "3d", BY).branch.project


@pytest.mark.postgres_too
def test_unchanged_definitions_are_shared(payments: Project) -> None:
    """A definition that names an ARN of the project has a row of its own."""
    plain = create(payments, PASS, "plain")
    nested = create(payments, NESTED, "nested")
    before = Definition.objects.count()
    branch = branch_of(payments)
    copies = {row.name: row for row in StateMachine.objects.filter(project=branch)}
    assert copies["plain"].definition_id == plain.definition_id
    assert copies["plain"].arn == plain.arn.replace("222222222222", branch.account_id)
    assert Definition.objects.count() == before + 1
    text = copies["nested"].definition.text
    assert text == nested.definition.text.replace("222222222222", branch.account_id)
    assert copies["nested"].role_arn == ROLE
    again = branch_of(payments, "feature/y")
    assert Definition.objects.count() == before + 2
    assert StateMachine.objects.filter(project=again).count() == 2


@pytest.mark.postgres_too
def test_it_has_versions_aliases_tags_and_activities(payments: Project) -> None:
    """Under its own account, with the numbers and names of the parent."""
    machine = create(payments, PASS, "plain")
    version = versions.publish_version(machine)
    number = version.number
    routing = [{"stateMachineVersionArn": version.arn, "weight": 100}]
    alias = versions.create_alias(payments, "live", routing)
    tags.put_tags(machine.arn, {"team": "pay", "stateyard:deployed": machine.definition_id})
    work = activities.create_activity(payments, REGION, "work")
    tags.put_tags(work.arn, {"kind": "human"})
    branch = branch_of(payments)
    copy = StateMachine.objects.get(project=branch)
    assert Version.objects.get(state_machine=copy).number == number
    assert Alias.objects.get(state_machine=copy).arn == alias.arn.replace(
        "222222222222", branch.account_id
    )
    assert tags.get_tags(copy.arn) == tags.get_tags(machine.arn)
    copied = Activity.objects.get(project=branch)
    assert tags.get_tags(copied.arn) == {"kind": "human"}
    assert copied.arn.split(":")[4] == branch.account_id


def test_the_tag_of_a_deployed_text_follows_it(payments: Project) -> None:
    """Else its page would say that the definition has drifted."""
    machine = create(payments, NESTED, "nested")
    tags.put_tags(machine.arn, {"stateyard:deployed": machine.definition_id})
    copy = StateMachine.objects.get(project=branch_of(payments))
    assert tags.get_tags(copy.arn) == {"stateyard:deployed": copy.definition_id}
    assert copy.definition_id != machine.definition_id


@pytest.mark.postgres_too
def test_rules_and_schedules_are_off(payments: Project) -> None:
    """Their targets and patterns name the branch; those of the parent go on."""
    machine = create(payments, PASS, "plain")
    pattern = {"account": ["222222222222"], "resources": [machine.arn]}
    rules.put_rule(payments, REGION, "told", pattern=json.dumps(pattern))
    rules.put_rule(payments, REGION, "timed", schedule="rate(1 minute)")
    rules.put_targets(payments, REGION, "told", [{"Id": "m", "Arn": machine.arn, "RoleArn": ROLE}])
    key = scheduler.ScheduleKey(payments, REGION, "default", "nightly")
    target = {"Arn": machine.arn, "RoleArn": ROLE}
    scheduler.create_schedule(key, scheduler.ScheduleSettings("rate(1 day)", target))
    branch = branch_of(payments)
    own = {row.schedule_name or row.name: row for row in EventRule.objects.filter(project=branch)}
    assert {*own} == {"told", "timed", "nightly"}
    assert {row.state for row in own.values()} == {"DISABLED"}
    assert {(row.next_ms, row.due_ms) for row in own.values()} == {(None, None)}
    copied = json.loads(own["told"].pattern)
    assert copied["account"] == [branch.account_id]
    targets = EventTarget.objects.filter(rule__project=branch)
    copy = StateMachine.objects.get(project=branch)
    assert [row.address for row in targets] == [copy.arn, copy.arn]
    assert copied["resources"] == [copy.arn]
    at_work = EventRule.objects.filter(project=payments)
    assert {row.state for row in at_work} == {"ENABLED"}
    branch_key = scheduler.ScheduleKey(branch, REGION, "default", "nightly")
    scheduler.set_schedule_state(branch_key, on=True)
    assert scheduler.get_schedule(branch_key).due_ms is not None


@pytest.mark.postgres_too
def test_it_logs_to_groups_of_its_own(payments: Project) -> None:
    """Of the same names, empty, with the same level."""
    group = "/aws/vendedlogs/states/orders"
    arn = f"arn:aws:logs:{REGION}:222222222222:log-group:{group}:*"
    logging = {"level": "ALL", "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": arn}}]}
    machine = create(payments, PASS, "plain")
    machines.update_machine(machine, logging=json.dumps(logging))
    branch = branch_of(payments)
    copy = StateMachine.objects.get(project=branch)
    assert branch.account_id in copy.logging
    route = LogRoute.objects.get(machine_arn=copy.arn)
    assert (route.group, route.level, route.project) == (group, "ALL", branch)
    assert log_groups.is_routed(branch, REGION, group)
    assert LogGroup.objects.filter(project=branch).count() == 1


@pytest.mark.postgres_too
def test_masks_and_views_are_copied_and_executions_are_not(payments: Project) -> None:
    """What the parent hides, the branch hides."""
    machine = create(payments, PASS, "plain")
    drain(start(machine))
    Project.objects.filter(pk=payments.pk).update(masked="$.card")
    saved_views.put_view(payments, "failed", "status=FAILED", None, BY)
    branch = branch_of(payments)
    assert branch.masked == "$.card"
    assert SavedView.objects.get(project=branch).name == "failed"
    assert not Execution.objects.filter(project=branch).exists()


def test_a_change_of_the_branch_stays_there(payments: Project) -> None:
    """Two branches change one machine, and each runs its own; the parent sees nothing."""
    machine = create(payments, PASS, "plain")
    first, second = branch_of(payments), branch_of(payments, "feature/y")
    for project, word in ((first, "one"), (second, "two")):
        copy = StateMachine.objects.get(project=project)
        definition = json.dumps(one("P", Type="Pass", Result=word))
        machines.update_machine(copy, definition=definition, actor=Actor("olga"))
        assert drain(start(StateMachine.objects.get(pk=copy.pk))).output == f'"{word}"'
    assert StateMachine.objects.get(pk=machine.pk).definition_id == machine.definition_id
    assert not Execution.objects.filter(project=payments).exists()


@pytest.mark.parametrize("count", [5, 20])
def test_it_takes_as_many_statements_for_any_project(payments: Project, count: int) -> None:
    """However many state machines there are."""
    for number in range(count):
        create(payments, one(f"P{number}", Type="Pass"), f"m{number}")
    with CaptureQueriesContext(connection) as queries:
        branch = branch_of(payments)
    assert StateMachine.objects.filter(project=branch).count() == count
    assert len(queries) < 60
