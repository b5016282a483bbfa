"""An error is found wherever it is, and one that nobody had is not looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from console.models import Execution, MapRun, Project
from console.web.search import scan
from tests.console.store.helpers import create, drain, start
from tests.console.web.overview.test_lists import copies, plan_of, queries

if TYPE_CHECKING:
    from django.test import Client

FAILS: dict[str, Any] = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops.First"}}}


@pytest.fixture
def failed(project: Project) -> Execution:
    """Return an execution that ended with Oops.First."""
    execution = start(create(project, FAILS), name="x")
    drain(execution)
    execution.refresh_from_db()
    assert execution.error == "Oops.First"
    return execution


def found(client: Client, error: str, more: str = "") -> int:
    """Count the rows of a page of executions with an error."""
    rows: int = len(
        client.get(f"/executions/?error={quote(error)}{more}").context["executions"].rows
    )
    return rows


@pytest.mark.parametrize("error", ["Oops.First", "oops", "FIRST", "s.F"])
@pytest.mark.usefixtures("failed")
def test_a_part_of_an_error_finds_it(client: Client, error: str) -> None:
    """In any case of its letters."""
    assert found(client, error) == 1


@pytest.mark.postgres_too
def test_an_error_that_nobody_had_is_not_looked_for(failed: Execution, client: Client) -> None:
    """The page is the last one, and no execution was read; names come from the index alone."""
    copies(failed, 300)
    shown = client.get("/executions/?error=Nobody").context["executions"]
    assert (shown.rows, shown.before, shown.looked) == ((), "", None)
    asked = queries(client, "/executions/?error=Nobody")
    assert not any("OFFSET" in sql for sql in asked)
    names = [sql for sql in asked if "RECURSIVE" in sql]
    assert len(names) == 1
    assert "execution_by_error" in plan_of(names[0])


def test_what_stands_behind_the_first_letters_is_found(failed: Execution, client: Client) -> None:
    """An index holds no long texts."""
    copies(failed, 1, error="E" * 90 + "needle")
    assert found(client, "needle") == 1


def test_errors_with_letters_of_any_language_are_found(failed: Execution, client: Client) -> None:
    """As they are written."""
    copies(failed, 1, error="Größe überschritten")
    assert found(client, "Größe") == 1


@pytest.mark.postgres_too
def test_errors_of_which_each_is_new_are_found(failed: Execution, client: Client) -> None:
    """There are too many names to read."""
    copies(failed, scan.MOST_NAMES + 50)
    for number, execution in enumerate(Execution.objects.order_by("pk")[: scan.MOST_NAMES + 20]):
        Execution.objects.filter(pk=execution.pk).update(error=f"Late {number:05}")
    assert found(client, "Oops") == 31
    assert found(client, "Late 00219") == 1
    assert found(client, "Late 00999") == 0


@pytest.mark.postgres_too
def test_the_errors_of_children_are_found(failed: Execution, client: Client) -> None:
    """Their names are not in the index."""
    fields = {"parent": failed, "task": 1, "definition": failed.definition, "total": 1}
    run = MapRun.objects.create(arn="run", start_ms=failed.start_ms, **fields)
    copies(failed, 1, error="Deep", map_run_id=run.pk)
    assert found(client, "Deep") == 0
    assert found(client, "Deep", "&children=with") == 1


@pytest.mark.usefixtures("failed")
def test_a_hidden_error_is_not_told_by_what_is_looked_for(project: Project, client: Client) -> None:
    """Whether somebody had it makes no difference to the page: names in the index are not asked."""
    says = {"StartAt": "F", "States": {"F": {"Type": "Fail", "ErrorPath": "$.card"}}}
    drain(start(create(project, says, "Says"), {"card": "hunter-4711"}))
    assert found(client, "hunter-4711") == 1
    Project.objects.filter(pk=project.pk).update(masked="$.card")
    for error in ("hunter-4711", "hunter-0000"):
        assert found(client, error) == 0
        asked = queries(client, f"/executions/?error={error}")
        assert any("OFFSET" in sql for sql in asked)
        assert not any("RECURSIVE" in sql for sql in asked)
    assert found(client, "Oops") == 1
