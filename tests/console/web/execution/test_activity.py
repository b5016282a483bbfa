"""X13: the page of an execution says who did what with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from console.db import audit
from console.models import AuditEntry
from console.store.executions.stop import stop_execution
from console.web.execution import audit_trail
from tests.console.store.helpers import WAIT, create, drain, start
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Execution, Project


@pytest.fixture
def stopped(project: Project) -> Execution:
    """Return an execution that Ana has stopped."""
    execution = start(create(project, WAIT))
    drain(execution)
    stop_execution(execution, cause="wrong input", actor=audit.Actor("ana"))
    execution.refresh_from_db()
    return execution


def test_x13_others_see_who_stopped_it_and_why(
    stopped: Execution, signed_in: Callable[[str], Client]
) -> None:
    """Even a viewer; newest first, and its start is the last line."""
    trail = audit_trail.audit_trail_of(stopped)
    assert [act.words for act in trail.acts] == ["Stopped", "Started"]
    assert (trail.acts[0].actor, trail.acts[0].reason) == ("ana", "wrong input")
    assert not trail.more
    shown = text(signed_in("viewer").get(page(stopped)))
    section = shown.partition('id="activity"')[2].partition("</section>")[0]
    assert "Stopped" in section
    assert "ana" in section
    assert "wrong input" in section


def test_x13_a_value_that_is_hidden_stays_hidden_in_a_reason(
    stopped: Execution, project: Project
) -> None:
    """Who wrote it into the cause did not think of that."""
    project.masked = "$.card"
    project.save()
    type(stopped).objects.filter(pk=stopped.pk).update(input='{"card": "4242-1"}')
    audit.record(project, audit.Actor("ana"), "PutNote", stopped.arn, "card 4242-1")
    fresh = type(stopped).objects.select_related("project", "definition").get(pk=stopped.pk)
    assert "4242-1" not in audit_trail.audit_trail_of(fresh).acts[0].reason


def test_x13_what_is_long_ends_and_says_so(stopped: Execution, project: Project) -> None:
    """The rest is in the audit."""
    for number in range(audit_trail.MOST + 5):
        audit.record(project, audit.Actor("ben"), "PutNote", stopped.arn, str(number))
    trail = audit_trail.audit_trail_of(stopped)
    assert len(trail.acts) == audit_trail.MOST
    assert trail.more
    assert trail.acts[0].reason == str(audit_trail.MOST + 4)


@pytest.mark.sqlite_only  # PostgreSQL reads a small table whole
def test_its_query_uses_the_index(stopped: Execution, django_assert_num_queries: Any) -> None:
    """A yard with a million starts has a million rows in the audit."""
    assert stopped.project.name == "default"
    with django_assert_num_queries(1) as told:
        audit_trail.audit_trail_of(stopped)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + told.captured_queries[0]["sql"])
        plan = " ".join(row[-1] for row in cursor.fetchall())
    assert "audit_target" in plan
    assert AuditEntry.objects.exists()
