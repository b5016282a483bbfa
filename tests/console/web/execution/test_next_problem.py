"""The control that leads from one failed or caught visit to the next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import markup, page

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

BAD = {"Type": "Fail", "Error": "Bad"}


def control(shown: str) -> tuple[str, str]:
    """Return the classes of the control, and its words."""
    match = re.search(r'<a class="([^"]*next-problem[^"]*)".*?>(.*?)</a>', shown, re.DOTALL)
    assert match is not None
    return match[1], " ".join(re.sub(r"<[^>]*>", " ", match[2].partition(">")[2]).split())


def caught_then(after: Any) -> Any:
    """Return a workflow that catches an error and goes on."""
    branch = {"StartAt": "No", "States": {"No": BAD}}
    catch = [{"ErrorEquals": ["Bad"], "Next": "After"}]
    either = {"Type": "Parallel", "Branches": [branch], "Catch": catch, "End": True}
    return {"StartAt": "Try", "States": {"Try": either, "After": after}}


def test_it_leads_to_caught_errors_where_nothing_else_failed(
    project: Project, client: Client
) -> None:
    """An execution that goes on after a caught error has no problem in red."""
    pause = {"Type": "Wait", "Seconds": 600, "End": True}
    running = drain(start(create(project, caught_then(pause))))
    classes, words = control(markup(client.get(page(running, "?step="))))
    assert "caught" in classes.split()
    assert "caught error" in words


def test_it_leads_to_problems_where_one_failed(project: Project, client: Client) -> None:
    """A failure counts more than a caught error."""
    failed = drain(start(create(project, caught_then(BAD))))
    classes, words = control(markup(client.get(page(failed, "?step="))))
    assert "caught" not in classes.split()
    assert words.endswith("3 problems")


def test_it_says_which_problem_is_on_display(project: Project, client: Client) -> None:
    """The first of three is 1 of 3; where none is on display, it says how many there are."""
    branch = {"StartAt": "No", "States": {"No": BAD}}
    catch = [{"ErrorEquals": ["Bad"], "Next": "Go"}]
    inner = {
        "StartAt": "Try",
        "States": {
            "Try": {"Type": "Parallel", "Branches": [branch], "Catch": catch, "Next": "Go"},
            "Go": {"Type": "Pass", "End": True},
        },
    }
    each = {"Type": "Map", "ItemProcessor": inner, "End": True}
    machine = create(project, {"StartAt": "Each", "States": {"Each": each}})
    execution = drain(start(machine, [1, 2, 3]))
    assert control(markup(client.get(page(execution, "?step=Each"))))[1].endswith("6 caught errors")
    assert control(markup(client.get(page(execution, "?step=Try&iteration=0"))))[1].endswith(
        "1 of 6"
    )
