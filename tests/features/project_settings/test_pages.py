"""Owners set quotas, denied actions, retention and mocks on pages, at once and within a ceiling."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.config import quotas
from console.config.quotas import Rate
from console.db import project_settings
from console.errors import ErrorCode
from console.integrations import mocks, permissions
from console.integrations.outcome import Failed, Succeeded, TaskAttempt
from console.integrations.targets import MachineKey
from console.models import AuditEntry, Execution, Project, ProjectSetting
from console.store.executions import retention
from console.store.executions.start import start_execution
from console.store.state import transition_rate
from tests.console.store.helpers import PASS, ROLE, WAIT, create, start
from tests.console.web.helpers import text
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

CONFIGURATION = {
    "StateMachines": {"machine": {"TestCases": {"Happy": {"Pay": "Paid"}}}},
    "MockedResponses": {"Paid": {"0": {"Return": {"id": 7}}}},
}
ARN = "arn:aws:states:us-east-1:123456789012:execution:machine:x"
MACHINE = MachineKey("default", "machine")


def row(kind: str, name: str = "") -> ProjectSetting:
    """Return the row of a setting."""
    return ProjectSetting.objects.get(kind=kind, name=name)


def revision(kind: str, name: str = "") -> str:
    """Return the revision of a setting, as its form has it."""
    setting = project_settings.find_setting(Project.objects.get(name="default"), kind, name)
    assert setting is not None
    return setting.revision


def problem_of(shown: str, field: str) -> str:
    """Return the error beside a field of a page, which the field names."""
    assert re.search(rf'aria-describedby="[^"]*\b{field}-error"', shown)
    start = f'<p class="error" id="{field}-error" role="alert">'
    assert start in shown
    return html.unescape(shown.partition(start)[2].partition("</p>")[0])


# -- quotas ----------------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_a_quota_counts_at_once(project: Project, signed_in: Callable[[str], Client]) -> None:
    """The next start is refused; the server's number counts again once the own one is removed."""
    machine = create(project, WAIT)
    start(machine)
    owner = signed_in("owner")
    sent = {"name": "open_executions", "value": "1", "revision": ""}
    assert owner.post("/settings/quotas/", sent).status_code == 302
    with raises_code(ErrorCode.ExecutionLimitExceeded, match="open executions is reached: 1"):
        start(machine)
    shown = text(owner.get("/settings/quotas/"))
    assert 'value="1"' in shown
    assert "Open executions: saved." in shown
    sent = {"name": "open_executions", "remove": "", "revision": revision("quota", sent["name"])}
    assert owner.post("/settings/quotas/", sent).status_code == 302
    start(machine)
    entries = AuditEntry.objects.filter(target="quota open_executions").order_by("pk")
    assert [(entry.actor, entry.action, entry.reason) for entry in entries] == [
        ("owner", "PutProjectSetting", "1"),
        ("owner", "RemoveProjectSetting", ""),
    ]


def test_rates_of_a_page_limit_starts_and_transitions(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """What asks first whether there is any rate learns of those of pages; others have none."""
    owner = signed_in("owner")
    machine = create(project, PASS)
    assert not quotas.limit_starts()
    assert not quotas.limit_transitions()
    for name in ("start_execution", "state_transition"):
        sent = {"name": name, "bucket": "1", "refill": "0.001", "revision": ""}
        assert owner.post("/settings/quotas/", sent).status_code == 302
    assert quotas.limit_starts()
    assert transition_rate.is_limited("default", machine.arn)
    assert not transition_rate.is_limited("other", machine.arn)
    assert quotas.quotas_of("other") == quotas.Quotas()
    assert quotas.quotas_of("default").state_transition == Rate(1, 0.001)
    start_execution(machine)
    with raises_code(ErrorCode.ThrottlingException):
        start_execution(machine)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (
            {"name": "open_executions", "value": "100,001"},
            "open_executions: got 100,001, wanted at most 100,000, the operator's ceiling",
        ),
        (
            {"name": "start_link", "bucket": "201", "refill": "1"},
            "start_link: got 201 at once and 1 a second, wanted at most 200 at once and 100 a",
        ),
        ({"name": "open_executions", "unlimited": ""}, "got no limit, wanted at most 100,000"),
        ({"name": "activities", "value": "many"}, 'activities: "many" is not a number'),
        ({"name": "activities", "value": "1,5"}, 'activities: "1,5" is not a number'),
        ({"name": "activities", "value": "-1"}, "activities: got -1, wanted a whole number from 0"),
        ({"name": "activities", "value": "1.5"}, "activities: got 1.5, wanted a whole number"),
        (
            {"name": "start_link", "bucket": "5", "refill": ""},
            "start_link: refill: enter a number",
        ),
        ({"name": "start_link", "bucket": "0", "refill": "1"}, "at least 1"),
        ({"name": "nothing", "value": "1"}, "nothing: got an unknown name, wanted one of"),
    ],
)
def test_a_quota_outside_the_ceiling_is_refused(
    project: Project, signed_in: Callable[[str], Client], sent: dict[str, str], words: str
) -> None:
    """In one sentence that names the ceiling, and with what was typed."""
    del project
    answer = signed_in("owner").post("/settings/quotas/", {"revision": "", **sent})
    shown = text(answer, 422)
    assert words in shown
    typed = sent.get("value", sent.get("bucket", ""))
    if sent["name"] != "nothing":
        assert f'value="{typed}"' in shown
        problem = f'<p class="error" id="problem-{sent["name"]}" role="alert">'
        assert words in shown.partition(problem)[2].partition("</p>")[0]
        fields = re.findall(r"<input [^>]*>", shown)
        marked = [field for field in fields if 'aria-invalid="true"' in field]
        assert marked
        assert all(f'aria-describedby="problem-{sent["name"]}"' in field for field in marked)
        if "refill:" in words:
            assert [field for field in marked if 'name="refill"' in field] == marked
    assert not ProjectSetting.objects.exists()


def test_the_operator_sets_the_ceiling(
    project: Project, signed_in: Callable[[str], Client], settings: Any
) -> None:
    """A lower ceiling counts for what was saved before; a project of the file is read-only."""
    owner = signed_in("owner")
    del project
    settings.STATEYARD_QUOTAS = {"activities": 5, "ceiling": {"activities": 50}}
    quotas.forget()
    assert quotas.quotas_of("default").activities == 5
    sent = {"name": "activities", "value": "40", "revision": ""}
    assert owner.post("/settings/quotas/", sent).status_code == 302
    assert quotas.quotas_of("default").activities == 40
    settings.STATEYARD_QUOTAS = {"activities": 5, "ceiling": {"activities": 30}}
    quotas.forget()
    assert quotas.quotas_of("default").activities == 30
    assert "Above the ceiling, so the ceiling applies." in text(owner.get("/settings/quotas/"))
    settings.STATEYARD_QUOTAS = {"projects": {"default": {"activities": 7}}}
    quotas.forget()
    assert quotas.quotas_of("default").activities == 7
    assert "By the operator, in <code>quotas.json</code>: read-only here." in text(
        owner.get("/settings/quotas/")
    )
    sent = {"name": "activities", "value": "3", "revision": revision("quota", "activities")}
    shown = text(owner.post("/settings/quotas/", sent), 422)
    assert "the operator's file sets this quota" in shown


def test_the_second_of_two_owners_is_refused(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """They see by whom it was changed, and what counts now."""
    del project
    owner = signed_in("owner")
    sent = {"name": "activities", "value": "4", "revision": ""}
    assert owner.post("/settings/quotas/", sent).status_code == 302
    shown = text(owner.post("/settings/quotas/", {**sent, "value": "3"}), 409)
    assert "was changed meanwhile by owner" in shown
    assert 'value="4"' in shown
    assert quotas.quotas_of("default").activities == 4


# -- denied actions --------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_a_denied_action_counts_at_once(
    project: Project, signed_in: Callable[[str], Client], settings: Any
) -> None:
    """In this project only; what the operator denies stays denied, and is read-only."""
    del project
    owner = signed_in("owner")
    settings.STATEYARD_PERMISSIONS = {"deny": {"test": ["s3:*"]}}
    sent = {"name": "test", "actions": "sqs:SendMessage\r\nsns:*", "revision": ""}
    assert owner.post("/settings/denied-actions/", sent).status_code == 302
    assert permissions.denies("default", ROLE, "sqs:SendMessage")
    assert permissions.denies("default", ROLE, "s3:GetObject")
    assert not permissions.denies("other", ROLE, "sqs:SendMessage")
    task = TaskAttempt("service", "", "sqs", "sendMessage", "{}", "", ARN, "", role_arn=ROLE)
    assert permissions.find_denial(task) is None
    mine = TaskAttempt(**{**_members(task), "project": "default"})
    assert isinstance(permissions.find_denial(mine), Failed)
    shown = text(owner.get("/settings/denied-actions/"))
    assert "sqs:SendMessage, sns:*" in shown
    assert "The operator, for every project: read-only here" in shown
    sent = {"name": "test", "revision": revision("denied-role", "test"), "remove": ""}
    assert owner.post("/settings/denied-actions/", sent).status_code == 302
    assert not permissions.denies("default", ROLE, "sqs:SendMessage")


def _members(task: TaskAttempt) -> dict[str, Any]:
    return {name: getattr(task, name) for name in TaskAttempt.__slots__}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"name": "r", "actions": "sqs"}, "wanted an action as sqs:SendMessage or sqs:*"),
        (
            {"name": "r", "actions": " \n"},
            "deny: r: name at least one action",
        ),
        ({"name": "", "actions": "*"}, "role: got nothing, wanted the name or ARN of a role"),
    ],
)
def test_a_wrong_denial_is_refused(
    project: Project, signed_in: Callable[[str], Client], sent: dict[str, str], words: str
) -> None:
    """The page says why beside the field, and has what was typed."""
    del project
    answer = signed_in("owner").post("/settings/denied-actions/", {"revision": "", **sent})
    shown = text(answer, 422)
    field = "new-actions" if sent["name"] else "role"
    assert words in problem_of(shown, field)
    assert shown.count('aria-invalid="true"') == 1
    assert not ProjectSetting.objects.exists()


def test_a_wrong_change_of_a_denial_keeps_what_was_typed(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """In the form of its row, which is open."""
    del project
    owner = signed_in("owner")
    sent = {"name": "test", "actions": "sqs:*", "revision": ""}
    assert owner.post("/settings/denied-actions/", sent).status_code == 302
    sent |= {"actions": "sqs:*\nnot one", "revision": revision("denied-role", "test")}
    shown = text(owner.post("/settings/denied-actions/", sent), 422)
    assert "wanted an action as" in problem_of(shown, "actions")
    assert problem_of(shown, "new-actions") == ""
    assert ">sqs:*\nnot one</textarea>" in shown
    assert '<details class="confirm" open>' in shown


# -- retention -------------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_a_retention_that_removes_something_has_to_be_confirmed(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """For the days that were shown: other days are counted anew."""
    owner = signed_in("owner")
    execution = start(create(project, PASS))
    Execution.objects.filter(pk=execution.pk).update(status="SUCCEEDED", stop_ms=1)
    shown = text(owner.post("/settings/retention/", {"days": "30", "revision": ""}), 422)
    assert "1 execution ended longer ago than that." in " ".join(shown.split())
    assert not ProjectSetting.objects.exists()
    sent = {"days": "20", "revision": "", "confirmed": "30"}
    assert owner.post("/settings/retention/", sent).status_code == 422
    sent = {"days": "30", "revision": "", "confirmed": "30"}
    assert owner.post("/settings/retention/", sent).status_code == 302
    assert retention.retention_days("default") == 30
    assert retention.retention_days("other") is None
    assert retention.is_anything_removed()


def test_the_operators_retention_is_the_ceiling(
    project: Project, signed_in: Callable[[str], Client], settings: Any
) -> None:
    """Owners keep executions for a shorter time, never for longer."""
    del project
    owner = signed_in("owner")
    settings.STATEYARD_RETENTION_DAYS = 14.0
    for days in ("15", "0", "nan", "soon"):
        answer = owner.post("/settings/retention/", {"days": days, "revision": ""})
        assert "a number" in problem_of(text(answer, 422), "days")
    shown = text(owner.post("/settings/retention/", {"days": "15", "revision": ""}), 422)
    assert "14, the operator's ceiling" in problem_of(shown, "days")
    assert owner.post("/settings/retention/", {"days": "7", "revision": ""}).status_code == 302
    assert retention.retention_days("default") == 7
    assert retention.retention_days("other") == 14
    settings.STATEYARD_RETENTION_DAYS = 3.0
    assert retention.retention_days("default") == 3


# -- mocks -----------------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_a_mock_configuration_counts_at_once(
    project: Project, signed_in: Callable[[str], Client], settings: Any
) -> None:
    """For the state machines of this project; those of the operator's file have the file's."""
    owner = signed_in("owner")
    sent = {"text": json.dumps(CONFIGURATION), "revision": ""}
    assert owner.post("/settings/mocks/", sent).status_code == 302
    assert mocks.are_in_use()
    assert mocks.test_cases(MACHINE) == ["Happy"]
    assert mocks.test_cases(MachineKey("other", "machine")) == []
    assert mocks.mocked_outcome(MACHINE, "Happy", "Pay", 0) == Succeeded('{"id":7}')
    assert mocks.is_mocked(MACHINE, "Happy", "Pay")
    assert mocks.mentions_own_state("Pay")
    assert not mocks.mentions_own_state("Other")
    resource = engine.parse_resource("arn:aws:states:::sqs:sendMessage")
    assert resource is not None
    problem = engine.current_platform().parameter_problem
    assert problem(resource, "Pay", {}) == ""
    assert problem(resource, "Other", {})
    create(project, PASS)
    assert "Happy" in text(owner.get("/machines/machine/"))
    shown = text(owner.get("/settings/mocks/"))
    assert '"Return"' in shown
    settings.STATEYARD_MOCKS = {"StateMachines": {"machine": {"TestCases": {"Of file": {}}}}}
    assert mocks.test_cases(MACHINE) == ["Of file"]
    shown = text(owner.get("/settings/mocks/"))
    assert "The operator's file is used instead." in shown
    sent = {"remove": "", "revision": revision("mocks")}
    assert owner.post("/settings/mocks/", sent).status_code == 302
    assert not mocks.mentions_own_state("Pay")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("{", "line 1, column 2: got no JSON"),
        ("[]", "must be a JSON object"),
        ('{"StateMachines": {}, "StateMachines": {}}', "the key 'StateMachines' stands"),
        ('{"Machines": {}}', "mocks: Machines: got an unknown name"),
        ('{"MockedResponses": {"A": {"0": {}}}}', "wanted one of Return and Throw"),
        ("[" * 5000, "got no JSON"),
    ],
)
def test_a_wrong_mock_configuration_is_refused(
    project: Project, signed_in: Callable[[str], Client], sent: str, words: str
) -> None:
    """The page says where and why, and has what was typed."""
    del project
    answer = signed_in("owner").post("/settings/mocks/", {"text": sent, "revision": ""})
    assert words in problem_of(text(answer, 422), "text")
    assert not ProjectSetting.objects.exists()


def test_a_conflict_of_mocks_keeps_both(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """The page shows theirs beside mine, and mine replaces theirs if I say so."""
    del project
    owner = signed_in("owner")
    for mine in ("{}", '{"StateMachines": {"mine": {}}}'):
        answer = owner.post("/settings/mocks/", {"text": mine, "revision": ""})
    shown = text(answer, 409)
    assert '"mine"' in shown
    assert "Save mine over theirs" in shown
    sent = {"text": mine, "revision": "", "over": revision("mocks")}
    assert owner.post("/settings/mocks/", sent).status_code == 302
    assert row("mocks").version == 2


def test_only_owners_change_settings_and_read_mocks(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """Others see quotas, roles, retention and test cases; no answer of a mock."""
    del project
    owner = signed_in("owner")
    owner.post("/settings/mocks/", {"text": json.dumps(CONFIGURATION), "revision": ""})
    for role in ("viewer", "operator", "editor"):
        client = signed_in(role)
        for page in ("quotas", "denied-actions", "retention", "mocks"):
            shown = text(client.get(f"/settings/{page}/"))
            assert "Only owners can change this." in shown
            assert '"id"' not in shown
            assert client.post(f"/settings/{page}/", {"name": "activities"}).status_code == 403
        assert "Happy" in text(client.get("/settings/mocks/"))
