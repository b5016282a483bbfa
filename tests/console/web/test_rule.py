"""The page of a rule changes, switches and deletes it, for users with the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.integrations import notices
from console.models import AuditEntry, EventRule, EventTarget
from tests.console.web.helpers import text
from tests.console.web.test_rules import ASKED, NOTIFICATIONS, SCHEDULES, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


def test_a_rule_is_changed_switched_and_deleted(project: Project, client: Client) -> None:
    """Each on its own form; what was not asked stays."""
    rule(project)
    client.post("/rules/ends/switch/", {"act": "disable"})
    client.post("/rules/ends/", {"pattern": '{"source": ["my.app"]}', "description": "mine"})
    made = EventRule.objects.get()
    assert (made.pattern, made.description) == ('{"source": ["my.app"]}', "mine")
    assert (made.state, made.targets.count()) == ("DISABLED", 1)
    assert "Disabled" in text(client.get("/rules/ends/"))
    wrong = text(client.post("/rules/ends/", {"pattern": "{"}), 422)
    assert "no JSON" in wrong
    assert "No deliveries are pending" in text(client.get("/rules/ends/delete/"))
    client.post("/rules/ends/delete/")
    assert EventRule.objects.count() == 0
    actions = [one.action for one in AuditEntry.objects.filter(actor="editor").order_by("pk")]
    assert actions == ["events:DisableRule", "events:PutRule", "events:DeleteRule"]


def test_targets_are_added_and_removed(project: Project, client: Client) -> None:
    """Up to five; a wrong one says why."""
    rule(project)
    for number in range(5):
        client.post("/rules/ends/targets/", {"target": f"a{number}@example.com"})
    ids = EventTarget.objects.order_by("target_id").values_list("target_id", flat=True)
    assert list(ids) == ["1", "2", "3", "4", "5"]
    assert "at most five targets" in text(client.get("/rules/ends/"))
    client.post("/rules/ends/targets/remove/", {"id": "2"})
    wrong = text(client.post("/rules/ends/targets/", {"target": "x"}, follow=True))
    assert "got 'x', wanted the ARN of" in wrong
    assert EventTarget.objects.count() == 4


def test_the_signing_secret_is_the_editors(project: Project, signed_in: SignIn) -> None:
    """A viewer sees where a rule sends, not how to sign for it, and no form."""
    made = rule(project)
    secret = notices.target_secret(made.arn, "1")
    assert secret in text(signed_in("editor").get("/rules/ends/"))
    viewer = signed_in("viewer")
    shown = text(viewer.get("/rules/ends/"))
    assert "https://example.com/hook" in shown
    assert secret not in shown
    for page in (NOTIFICATIONS, SCHEDULES, "/rules/ends/"):
        assert 'method="post"' not in text(viewer.get(page)).partition("<main")[2]
    for path in ("", "switch/", "delete/", "targets/", "targets/remove/"):
        assert viewer.post(f"/rules/ends/{path}", {"act": "disable"}).status_code == 403
    assert viewer.post(NOTIFICATIONS, ASKED).status_code == 403
    assert viewer.post(SCHEDULES, ASKED).status_code == 403
