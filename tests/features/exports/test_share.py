"""X17: the graph as a picture or as words, by a link that expires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client

from console.db import clock
from console.db.audit import Actor
from console.features.exports import shares
from console.models import AuditEntry, Execution, Membership
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import page, text
from tests.features.exports.test_pictures import DEFINITION, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

HOUR_MS = 3_600_000
CANARY = {"secret": "canary-4711"}


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an ended execution with something to hide."""
    return drain(start(create(project, DEFINITION), CANARY, "x"))


def links(client: Client, execution: Execution, hours: str = "1") -> list[str]:
    """Make the links of an execution by its page; return their paths."""
    answer = client.post(page(execution, "share/"), {"hours": hours})
    assert answer.status_code == 200
    return [link.removeprefix("http://testserver") for link in answer.context["made"]]


def test_x17_a_link_shows_the_graph_to_anybody(client: Client, execution: Execution) -> None:
    """With the statuses of the page, and nothing of the data."""
    picture, outline = links(client, execution)
    stranger = Client()
    answer = stranger.get(picture)
    assert answer["Content-Type"].startswith("image/svg+xml")
    assert answer["Cache-Control"] == "no-store"
    told = words(answer.content.decode())
    assert "Caught error" in told
    assert "machine · x · Succeeded" in told
    said = text(stranger.get(outline))
    lines = said.splitlines()
    assert lines[0].startswith("machine · x · Succeeded · ")
    assert lines[2].startswith("Try ")
    assert "Caught error  Parallel" in lines[2]
    assert lines[3].startswith("  Bad ")
    assert "Failed        Fail" in lines[3]
    assert "Not entered   Pass" in lines[5]
    assert CANARY["secret"] not in told + said


def test_x17_an_expired_link_is_refused(
    client: Client, execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 403 and the reason; so is one that was tampered with."""
    picture, outline = links(client, execution)
    now = clock.now_ms() + HOUR_MS + 1000
    monkeypatch.setattr(clock, "now_ms", lambda: now)
    for path in (picture, outline):
        assert "This link has expired." in text(Client().get(path), 403)
    longer = links(client, execution, "168")[0]
    assert Client().get(longer).status_code == 200
    assert Client().get(longer.replace("shared/", "shared/x")).status_code == 403
    assert Client().get(longer.replace("graph.svg", "input.json")).status_code == 404


def test_x17_a_link_lives_no_longer_than_its_makers_right(
    client: Client, execution: Execution
) -> None:
    """Who has left the project has left no door open; nor has what was removed."""
    picture = links(client, execution)[0]
    Membership.objects.filter(user__username="editor").update(role="viewer")
    assert Client().get(picture).status_code == 403
    Membership.objects.filter(user__username="editor").update(role="editor")
    assert Client().get(picture).status_code == 200
    Execution.objects.filter(pk=execution.pk).delete()
    assert "opens nothing any more" in text(Client().get(picture), 403)


def test_x17_a_link_of_a_removed_person_stays_closed(client: Client, execution: Execution) -> None:
    """Also when somebody of that name is added again, who starts from nothing."""
    picture = links(client, execution)[0]
    member = Membership.objects.get(user__username="editor")
    Membership.objects.filter(pk=member.pk).delete()
    Membership.objects.create(project=member.project, user=member.user, role="editor")
    assert "opens nothing any more" in text(Client().get(picture), 403)


def test_x17_making_one_takes_a_right_and_leaves_a_trace(
    signed_in: Callable[[str], Client], client: Client, execution: Execution
) -> None:
    """A viewer has neither link nor page; the audit says who made one for how long."""
    viewer = signed_in("viewer")
    assert page(execution, "share/") not in text(viewer.get(page(execution)))
    assert viewer.post(page(execution, "share/")).status_code == 403
    assert page(execution, "share/") in text(client.get(page(execution)))
    assert "As text" in text(client.get(page(execution, "share/")))
    tried = AuditEntry.objects.get(action="Refused")
    assert (tried.actor, tried.reason) == ("viewer", "SharePicture")
    links(client, execution, "nonsense")
    entry = AuditEntry.objects.get(action="SharePicture", actor="editor")
    assert (entry.actor, entry.target, entry.reason) == ("editor", execution.arn, "24 h")
    assert text(viewer.get(page(execution, "outline.txt"))).startswith("machine · x")


def test_x17_a_token_says_only_what_it_opens(project: Project, execution: Execution) -> None:
    """The same execution gives another token to another maker; nothing is stored."""
    del project
    token, other = (shares.create_share(execution, 1, Actor(name)) for name in ("a", "b"))
    assert token != other
    with pytest.raises(shares.ShareClosed):
        shares.open_share(token)
