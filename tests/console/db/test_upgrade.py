"""Rows of an earlier release survive an upgrade and stay usable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from console import execution_rights
from console.errors import InvalidDefinition
from console.models import AuditEntry, Definition, Execution, Project, StateMachine, Version
from console.store.executions.start import start_execution
from tests.console.migrations.migration_steps import LAST, migrate_by_steps
from tests.console.store.helpers import create, drain, one

if TYPE_CHECKING:
    from collections.abc import Iterator

BEFORE = "0033_invitations"


@pytest.fixture
def earlier(project: Project) -> Iterator[Any]:
    """The models of the release before, and its tables."""
    del project
    yield migrate_by_steps(BEFORE)
    migrate_by_steps(LAST)


def stored(models: Any) -> int:
    """Write an execution as the release before did; return its number."""
    text = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}'
    definition = models.get_model("console", "Definition").objects.create(sha256="d", text=text)
    project = models.get_model("console", "Project").objects.get()
    common = {"project": project, "definition": definition, "role_arn": "arn:aws:iam::1:role/r"}
    machines = models.get_model("console", "StateMachine").objects
    entries = models.get_model("console", "AuditEntry").objects
    for name, actors in (("one", ["ed", "ana"]), ("two", ["manage.py"])):
        arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
        machine = machines.create(
            **common, region="us-east-1", name=name, arn=arn, created_ms=1, updated_ms=1
        )
        for at_ms, actor in enumerate(actors):
            action = "UpdateStateMachine" if at_ms else "CreateStateMachine"
            entries.create(at_ms=at_ms, project=project, actor=actor, action=action, target=arn)
    entries.create(at_ms=9, project=project, actor="ed", action="StartExecution", target=arn)
    execution = models.get_model("console", "Execution").objects.create(
        **common,
        state_machine=machine,
        state_machine_arn=arn,
        arn=arn.replace("stateMachine", "execution") + ":x",
        name="x",
        machine_updated_ms=1,
        input="{}",
        start_ms=1,
        started_by="ana",
        status="SUCCEEDED",
    )
    models.get_model("console", "Version").objects.create(
        state_machine=machines.get(name="one"),
        definition=definition,
        number=1,
        created_ms=0,
        role_arn="r",
        revision_id="r",
    )
    number: int = execution.pk
    return number


@pytest.mark.slow
def test_rows_of_the_release_before_are_kept(earlier: Any) -> None:
    """Who edited a machine comes from the audit; of an execution nothing is known, and it runs."""
    for name in ("ed", "ana"):
        User.objects.create_user(name)
    number = stored(earlier)
    migrate_by_steps(LAST)
    editors = dict(StateMachine.objects.values_list("name", "edited_by"))
    assert editors == {"one": '["ana"]', "two": ""}
    assert Version.objects.get().edited_by == '["ed"]'
    execution = Execution.objects.get(pk=number)
    assert (execution.edited_by, execution.acting_for, execution.depth) == (None, None, None)
    assert execution_rights.people_of(execution) == ("", "ana")
    assert {entry.who for entry in AuditEntry.objects.all()} == {"ed", "ana", "manage.py"}


def test_a_definition_that_would_be_refused_now_still_runs(project: Project) -> None:
    """An earlier release accepted JSONata that reads the top level, where it found nothing."""
    machine = create(project, one("P", Type="Pass"))
    output = "{% $exists(a.b) or $exists($$.c) or $exists($) ? 1 : 2 %}"
    definition = {"QueryLanguage": "JSONata", **one("P", Type="Pass", Output=output)}
    text = json.dumps(definition)
    machine.definition = Definition.objects.create(sha256="of an earlier release", text=text)
    machine.save()
    execution = drain(start_execution(machine))
    assert (execution.status, execution.output) == ("SUCCEEDED", "2")
    with pytest.raises(InvalidDefinition, match="is not supported"):
        create(project, definition, "another")


@pytest.mark.slow
@pytest.mark.postgres_only
def test_a_cut_off_index_is_made_anew(project: Project) -> None:
    """PostgreSQL leaves an invalid index behind where CREATE INDEX CONCURRENTLY is cut off."""
    migrate_by_steps("0035_fill_editors")
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX execution_by_parent ON console_execution (parent)")
    migrate_by_steps(LAST)
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, "console_execution")
    assert constraints["execution_by_parent"]["columns"] == ["parent"]
    machine = create(project, {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
    assert start_execution(machine).depth is None
