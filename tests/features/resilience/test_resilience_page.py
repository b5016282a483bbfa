"""The page of the resilience report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.features.resilience import views
from tests.console.resilience.machines import WEAK, WELL_MADE
from tests.console.store.helpers import create
from tests.console.web.helpers import markup

if TYPE_CHECKING:
    import pytest
    from django.test import Client

    from console.models import Project

ADDRESS = "/machines/machine/resilience/"


def shown(client: Client, project: Project, definition: Any) -> str:
    """Return the page of a definition."""
    create(project, definition)
    return markup(client.get(ADDRESS))


def test_weaknesses_have_a_remedy(client: Client, project: Project) -> None:
    """State, tested place, what is weak and what to change."""
    text = shown(client, project, WEAK["MaxAttempts 0"][1])
    assert "No retries." in text
    assert "MaxAttempts is 0: this Retrier never retries." in text
    assert "Set MaxAttempts to 1 or more, or remove the Retrier." in text


def test_trials_have_time_calls_and_cost(client: Client, project: Project) -> None:
    """1 + 2 + 4 + 8 + 16 seconds, 6 calls, 5 retries."""
    text = shown(client, project, WELL_MADE["a Task"])
    assert "No weaknesses" in text
    assert "Every call fails with Lambda.TooManyRequestsException" in text
    assert "by Charge/Catch[0], continues at Failed" in text
    for cell in (">31 s<", ">6<", ">$0.000125<"):
        assert cell in text


def test_each_weakness_has_a_heading() -> None:
    """A new kind must be shown as well."""
    codes = {code for code, _ in WEAK.values()}
    assert codes == set(views.TITLES)


def test_nothing_to_try(client: Client, project: Project) -> None:
    """A machine without calls."""
    definition = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    assert "Nothing to try" in shown(client, project, definition)


def test_a_page_takes_a_few_seconds_at_most(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not tried is counted, and the command that tries it is named."""
    monkeypatch.setattr(views, "MOST_SECONDS", 0.0)
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(3)}
    charge = {**WELL_MADE["a Task"]["States"], **states}
    charge["S3"] = {"Type": "Pass", "Next": "Charge"}
    text = shown(client, project, {"StartAt": "S0", "States": charge})
    assert "Nothing to try" not in text
    assert "not tried here" in text
    assert "stateyard resilience machine" in text
