"""E9: the columns one chose, and the way down to what a filter lets through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from console.web.core.columns import TABLES, chosen_columns, updated_choice
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import page, steps_page, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Execution, Project


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return one that has ended."""
    return drain(start(create(project, PASS), name="x"))


def headings(client: Client, address: str, table: str) -> list[str]:
    """Return the words above the columns of the steps, or of the executions."""
    shown = text(client.get(address))
    part = shown.partition({"steps": 'id="step-table"', "executions": 'id="executions"'}[table])[2]
    cells = re.findall(r"<th[^>]*>(.*?)</th>", part.partition("</thead>")[0], re.DOTALL)
    words = [re.sub(r"<[^>]+>|[▲▼]|\(.*\)", "", cell).strip() for cell in cells]
    return [word for word in words if word != "Selected"]


def test_e9_chosen_columns_are_kept_for_the_person(
    execution: Execution, signed_in: Callable[[str], Client], client: Client
) -> None:
    """In every browser of theirs and in nobody else's; the choice leads back to the page."""
    from django.test import Client as Browser

    usual = ["Name", "Type", "Status", "Entered", "Duration", "Visits"]
    assert headings(client, steps_page(execution), "steps") == usual
    asked = {"table": "steps", "column": ["retries", "left", "nonsense"], "next": page(execution)}
    answer = client.post("/preferences/columns/", asked)
    assert answer["Location"] == f"{page(execution)}#workflow"
    another = Browser()
    another.login(username="editor", password="a long enough password")
    for browser in (client, another):
        assert headings(browser, steps_page(execution), "steps") == ["Name", "Left", "Retries"]
        assert headings(browser, steps_page(execution, "?at=2&sort=-name"), "steps")[1] == "Left"
    assert headings(signed_in("viewer"), steps_page(execution), "steps") == usual
    client.post("/preferences/columns/", {**asked, "act": "reset"})
    assert headings(client, steps_page(execution), "steps") == usual


def test_e9_lists_of_executions_have_chosen_columns(execution: Execution, client: Client) -> None:
    """On all of them; a row that a poll brings has the same cells."""
    client.post(
        "/preferences/columns/",
        {"table": "executions", "column": ["status", "redrives", "version"]},
    )
    words = ["Name", "Status", "Version or alias", "Redrives"]
    for address in ("/executions/", "/machines/machine/"):
        assert headings(client, address, "executions") == words
    asked = {"running": execution.pk, "newest": 0, "count": 0}
    row = text(client.get("/executions/_new", asked)).partition("<tr")[2]
    assert row.count("<td") == 1 + len(words)
    assert text(client.post("/preferences/columns/", {"table": "x"}), 404)


def test_e9_a_choice_leads_back_to_a_page_of_ours_only(client: Client, project: Project) -> None:
    """Whatever the form or the browser says."""
    for header, field in (("http://evil.example/a", ""), ("", "//evil.example/")):
        asked = {"table": "steps", "next": field}
        answer = client.post("/preferences/columns/", asked, headers={"referer": header})
        assert answer["Location"] == "/#workflow"


def test_e9_a_choice_of_none_is_the_usual_one() -> None:
    """Tables are chosen for one by one."""
    both = updated_choice(updated_choice("", "steps", ["type"]), "executions", ["by", "status"])
    assert chosen_columns(both) == {"steps": ("type",), "executions": ("status", "by")}
    assert chosen_columns(updated_choice(both, "steps", [])) == {
        "steps": TABLES["steps"].plain,
        "executions": ("status", "by"),
    }
