"""The palette finds things in all projects of its reader, and in no others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from console.db.audit import Actor
from console.features.notifications.store import rules
from console.models import Execution, Project
from console.store.people import people
from console.store.tasks.activities import create_activity
from tests.console.store.helpers import PASS, REGION, create, start
from tests.console.web.helpers import text
from tests.features.palette.test_palette import matches

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client
    from pytest_django.fixtures import Settings

BY = Actor("manage.py")


@pytest.fixture
def yard(project: Project) -> dict[str, Project]:
    """Return three projects with things of one name; the viewer is a member of two."""
    yard = {
        "default": project,
        "payments": Project.objects.create(name="payments", account_id="222222222222"),
        "secret": Project.objects.create(name="secret", account_id="333333333333"),
    }
    for name, each in yard.items():
        start(create(each, PASS, f"Orders-of-{name}"), name="order-4711")
        create_activity(each, REGION, f"orders-{name}", BY)
        pattern = json.dumps({"source": ["x"]})
        rules.put_rule(each, REGION, f"orders-{name}", pattern=pattern)
    return yard


@pytest.fixture
def viewer(yard: dict[str, Project], signed_in: Callable[[str], Client]) -> Client:
    """Return the client of a viewer of ``default`` and ``payments``."""
    client = signed_in("viewer")
    people.put_member(yard["payments"], "viewer", "viewer", BY)
    return client


def test_all_projects_of_the_reader_are_searched(viewer: Client) -> None:
    """Each of them is a group; a match opens its project and its page."""
    found = matches(viewer, "orders")
    assert found["State machines"] == ["Orders-of-default"]
    assert found["In the project payments"] == ["Orders-of-payments", *["orders-payments"] * 2]
    assert matches(viewer, "order-4711")["In the project payments"] == ["order-4711"]
    shown = text(viewer.get("/palette/?q=Orders-of-payments"))
    assert 'name="next" value="/machines/Orders-of-payments/"' in shown
    sent = {"project": "payments", "next": "/machines/Orders-of-payments/"}
    answer = viewer.post("/preferences/", sent)
    assert answer.status_code == 302
    assert "Orders-of-payments" in text(viewer.get(answer["Location"]))
    assert "In the project default" in matches(viewer, "orders")


def test_an_arn_is_found_in_every_region(yard: dict[str, Project], viewer: Client) -> None:
    """An ARN names its region; a name is looked for in the region of the page."""
    for arn, title in (
        (Execution.objects.get(project=yard["payments"]).arn, "order-4711"),
        (f"arn:aws:states:{REGION}:222222222222:stateMachine:Orders-of-payments", "Orders-of-pay"),
        (f"arn:aws:states:{REGION}:222222222222:activity:orders-payments", "orders-payments"),
    ):
        for region in ("", "&region=eu-west-1"):
            response = viewer.get(f"/palette/?q={quote(arn)}{region}")
            groups = {group.title: group.matches for group in response.context["groups"]}
            match = groups["In the project payments"][0]
            assert match.title.startswith(title)
            assert "region=" not in match.address
    response = viewer.get("/palette/?q=orders&region=eu-west-1")
    assert not [group for group in response.context["groups"] if "payments" in group.title]


@pytest.mark.parametrize("role", ["viewer", "owner"])
def test_nothing_of_another_project_is_found(
    yard: dict[str, Project], viewer: Client, signed_in: Callable[[str], Client], role: str
) -> None:
    """By no name, part of a name or ARN, of no kind; nor after a membership has ended."""
    client = viewer if role == "viewer" else signed_in(role)
    secret = yard["secret"]
    arns = [Execution.objects.get(project=secret).arn]
    place = f"arn:aws:states:{REGION}:333333333333"
    arns += [f"{place}:stateMachine:Orders-of-secret", f"{place}:activity:orders-secret"]
    for sought in ("orders", "secret", "order-4711", "3333", *arns):
        response = client.get(f"/palette/?q={quote(sought)}")
        answered = repr(response.context["groups"])
        for typed in (sought, quote(sought, safe="")):  # a link to a search of executions has it
            answered = answered.replace(typed, "")
        assert "orders-secret" not in answered
        assert "Orders-of-secret" not in answered
        assert "333333333333" not in answered
        assert "In the project secret" not in answered
    people.remove_member(yard["payments"], "viewer", BY)
    assert not [group for group in matches(viewer, "orders") if "payments" in group]


@pytest.mark.postgres_too
def test_the_queries_do_not_grow_with_the_projects(
    viewer: Client, django_assert_max_num_queries: Any
) -> None:
    """Every key pressed asks."""
    for number in range(8):
        made = Project.objects.create(name=f"p{number}", account_id=f"4444444444{number:02}")
        people.put_member(made, "viewer", "viewer", BY)
        create(made, PASS, f"Orders-{number}")
    with django_assert_max_num_queries(40):
        found = matches(viewer, "orders")
    assert len([group for group in found if group.startswith("In the project")]) == 9


def test_activities_are_not_found_without_the_feature_of_tasks(
    viewer: Client, settings: Settings
) -> None:
    """They have no page then, neither in the project of the page nor in others."""
    before = matches(viewer, "orders-")
    names = (name for name in settings.STATEYARD_FEATURES if name != "tasks")
    settings.STATEYARD_FEATURES = tuple(names)
    after = matches(viewer, "orders-")
    assert before.pop("Activities") == ["orders-default"]
    assert before["In the project payments"].count("orders-payments") == 2
    before["In the project payments"].remove("orders-payments")
    assert before == after
