"""The list of state machines: its order, how each fared lately, and the samples apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from console.models import StateMachine
from console.samples import ROLE_END
from console.store.machines.tags import put_tags
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import markup, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

FAILS = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}


def names(client: Client, query: str = "") -> list[str]:
    """Return the machines in the order of the page."""
    return [row.machine.name for row in client.get(f"/machines/{query}").context["machines"].rows]


@pytest.mark.postgres_too
def test_the_list_is_sorted_by_its_headings(project: Project, client: Client) -> None:
    """By name, last start or creation; a second press turns the order, pages keep it."""
    machines = [create(project, PASS, name) for name in ("b", "a", "c")]
    for place, machine in enumerate(machines):
        StateMachine.objects.filter(pk=machine.pk).update(created_ms=place)
    start(machines[2])
    assert names(client) == ["a", "b", "c"]
    assert names(client, "?sort=-name") == ["c", "b", "a"]
    assert names(client, "?sort=created") == ["b", "a", "c"]
    assert names(client, "?sort=-created") == ["c", "a", "b"]
    assert names(client, "?sort=-started") == ["c", "a", "b"], "one that never ran stands last"
    assert names(client, "?sort=started")[0] == "c"
    assert names(client, "?sort=nonsense&after=a") == ["b", "c"]
    for place in range(60):
        create(project, PASS, f"m{place:02}")
    first = client.get("/machines/?sort=-name")
    second = names(client, f"?sort=-name&after={first.context['machines'].after}")
    assert second[-1] == "a"
    assert not {row.machine.name for row in first.context["machines"].rows} & set(second)
    following = re.search(r'rel="next" href="([^"]+)"', text(first))
    assert following
    assert "sort=-name" in following[1]


def test_a_row_says_how_the_last_executions_ended(project: Project, client: Client) -> None:
    """A bar for each, and which part of those that ended succeeded."""
    machine = create(project, FAILS, "flaky")
    drain(start(machine))
    calm = create(project, PASS, "calm").definition
    StateMachine.objects.filter(pk=machine.pk).update(definition=calm)
    for _ in range(5):
        drain(start(StateMachine.objects.get(pk=machine.pk)))
    response = client.get("/machines/")
    rows = {row.machine.name: row for row in response.context["machines"].rows}
    assert rows["flaky"].recent == ("FAILED", *["SUCCEEDED"] * 5)
    assert rows["flaky"].success_percent == 83
    assert rows["calm"].success_percent is None
    assert "83 %" in text(response)


def test_a_page_without_rows_has_one_button_to_create(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """Also where only samples are there; an empty yard has a sample to start in one press."""
    editor, viewer = signed_in("editor"), signed_in("viewer")
    shown = text(editor.get("/machines/"))
    assert shown.count("Create state machine") == 1
    assert "Start a sample" in shown
    assert "Name contains" not in shown, "there is nothing to look for"
    assert "/samples/start/" not in text(viewer.get("/machines/"))
    machine = create(project, PASS, "Sample")
    StateMachine.objects.filter(pk=machine.pk).update(role_arn=f"arn:aws:iam::1{ROLE_END}")
    shown = text(editor.get("/machines/"))
    assert shown.count("Create state machine") == 1
    assert "No state machines of your own yet" in shown
    create(project, PASS, "own")
    assert text(editor.get("/machines/")).count("Create state machine") == 1


def test_samples_stand_apart_from_ones_own(project: Project, client: Client) -> None:
    """In a list of their own below."""
    create(project, PASS, "mine")
    sample = create(project, PASS, "Sample")
    StateMachine.objects.filter(pk=sample.pk).update(role_arn=f"arn:aws:iam::1{ROLE_END}")
    response = client.get("/machines/")
    assert names(client) == ["mine"]
    assert [row.machine.name for row in response.context["samples"].rows] == ["Sample"]
    assert "Samples" in text(response)


def test_deleting_is_not_beside_starting(
    signed_in: Callable[[str], Client], project: Project
) -> None:
    """The press that cannot be undone is on the page of the settings, for who may."""
    create(project, PASS, "mine")
    editor = signed_in("editor")
    assert "/machines/mine/delete/" not in markup(editor.get("/machines/mine/"))
    assert "/machines/mine/delete/" in markup(editor.get("/machines/mine/settings/"))
    assert "/machines/mine/delete/" not in markup(
        signed_in("viewer").get("/machines/mine/settings/")
    )


@pytest.mark.postgres_too
def test_a_tag_leads_to_the_state_machines_that_have_it(project: Project, client: Client) -> None:
    """Exactly this one, in this project; options of the server are no tags of anybody."""
    machines = {name: create(project, PASS, name) for name in ("a", "b", "c")}
    put_tags(machines["a"].arn, {"team": "shop", "stateyard:childPolicy": "abandon"})
    put_tags(machines["b"].arn, {"team": "shopping", "cost": "1"})
    put_tags(machines["c"].arn, {"team": "shop", "a=b": "c=d"})
    rows = {row.machine.name: row for row in client.get("/machines/").context["machines"].rows}
    assert rows["a"].tags == ("team=shop",)
    assert rows["b"].tags == ("cost=1", "team=shopping")
    shown = text(client.get("/machines/"))
    assert 'href="/machines/?tag=team%3Dshop"' in shown
    assert names(client, "?tag=team%3Dshop") == ["a", "c"]
    assert names(client, "?tag=a%3Db%3Dc%3Dd") == ["c"]
    assert names(client, "?tag=team%3Dshop&q=c") == ["c"]
    assert names(client, "?tag=team") == []
    tagged = text(client.get("/machines/?tag=team%3Dshop"))
    assert '<input type="hidden" name="tag" value="team=shop">' in tagged
    none = text(client.get("/machines/?tag=team%3Dnone"))
    assert "No state machine has" in " ".join(none.split())
