"""What remains of a deleted state machine is named on the pages; no link leads to nowhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from console.db import audit
from console.features.notifications.store import rules
from console.store.machines import machines
from console.web.core.existing import existing_arns
from tests.console.store.helpers import PASS, REGION, create, drain, start
from tests.console.web.helpers import markup

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

PAGES = (
    "/executions/",
    "/notifications/",
    "/rules/ends/",
    "/schedules/",
    "/rules/nightly/",
    "/audit/",
    "/machines/gone/executions/last/",
    "/machines/gone/executions/last/tree/",
    "/machines/gone/executions/last/definition/",
)


def links_to_nowhere(client: Client, page: str, about: str) -> list[str]:
    """Return the links of a page with a word in them that lead to no page."""
    links = set(re.findall(r'href="(/[^"#]*)', markup(client.get(page)).replace("&amp;", "&")))
    return [
        link
        for link in sorted(links)
        if about in link and client.get(link, follow=True).status_code != 200
    ]


def test_no_link_leads_to_a_deleted_state_machine(project: Project, client: Client) -> None:
    """Its name stays as text that says so, wherever it was a link."""
    machine, other = create(project, PASS, "gone"), create(project, PASS, "kept")
    drain(start(machine, name="last"))
    drain(start(other, name="first"))
    rules.put_rule(project, REGION, "ends", pattern='{"source": ["aws.states"]}')
    rules.put_rule(project, REGION, "nightly", schedule="rate(1 day)")
    for name in ("ends", "nightly"):
        targets = [{"Id": each.name, "Arn": each.arn} for each in (machine, other)]
        rules.put_targets(project, REGION, name, targets)
    for each in (machine, other):
        audit.record(project, audit.Actor("ana"), "UpdateStateMachine", each.arn)
    machines.delete_machine(project, machine.arn)
    for page in PAGES:
        shown = markup(client.get(page))
        assert re.search(r"\bdeleted\b", shown), page
        assert links_to_nowhere(client, page, "gone") == []
        if "gone" not in page:
            assert "kept" in "".join(re.findall(r'href="([^"]*)', shown)), page


def test_a_version_exists_as_long_as_its_state_machine(project: Project) -> None:
    """As does an alias."""
    machine = create(project, PASS)
    execution = drain(start(machine))
    for arn in (machine.arn, f"{machine.arn}:1", f"{machine.arn}:PROD", execution.arn):
        assert existing_arns([arn, "", "no ARN", f"{arn}x".replace("m", "n")]) == {arn}
