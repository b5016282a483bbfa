"""The file of a project's settings carries its targets and functions, without their secrets."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import pytest

from console.db import project_settings
from console.db.audit import Actor
from console.errors import ValidationException
from console.features.project_settings import documents, sections
from console.integrations import targets
from console.integrations.targets import MachineKey
from console.models import AuditEntry, Project, ProjectSetting
from tests.console.web.helpers import text
from tests.features.project_targets.test_pages import EDIT, KEYS, PAGE, SECRET, SQS, revision_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from django.test import Client
    from pytest_django.fixtures import Settings

BY = Actor("ana")
FILE = "/settings/file/"
SHOP = {"name": "shop", "type": "API_KEY", "header": "X-Key", "secret": SECRET}
CRM = {
    "name": "crm",
    "type": "OAUTH_CLIENT_CREDENTIALS",
    "authorization_endpoint": "https://login.example.com/token",
    "method": "POST",
    "client_id": "yard",
    "scope": "read",
    "secret": SECRET,
}
BILLING = {"name": "bill-*", "address": "http://billing:9000/invocations"}
SECTIONS: dict[str, Any] = {
    "targets": {"sqs": {"endpoint_url": "http://moto:5000", "region": "eu-west-1"}},
    "addresses": ["https://api.example.com"],
    "connections": {
        "crm": {
            "type": "OAUTH_CLIENT_CREDENTIALS",
            "AuthorizationEndpoint": "https://login.example.com/token",
            "HttpMethod": "POST",
            "ClientID": "yard",
            "scope": "read",
        },
        "shop": {"type": "API_KEY", "name": "X-Key"},
    },
    "functions": {"bill-*": {"handler": "http://billing:9000/invocations"}},
}
LACKING = [
    "targets: sqs: access key ID and secret access key",
    "connections: crm: client secret",
    "connections: shop: key",
]


@pytest.fixture
def filled(owner: Client) -> Project:
    """Return the project with a target of each kind."""
    address = {"name": "https://api.example.com"}
    sent = ("service", SQS), ("address", address), ("connection", SHOP), ("connection", CRM)
    for kind, fields in (*sent, ("function", BILLING)):
        answer = owner.post(f"{EDIT}{kind}/", fields)
        assert answer.status_code == 302, text(answer)
    return Project.objects.get(name="default")


def test_one_file_has_all_settings_of_a_project(filled: Project, owner: Client) -> None:
    """Without secrets; its import into the project changes nothing, and asks for no secret."""
    exported = text(owner.get(f"{FILE}export/"))
    for secret in KEYS.values():
        assert secret not in exported
    read = documents.read_document(exported).sections
    assert {name: read[name] for name in SECTIONS} == SECTIONS
    plan = sections.import_settings(filled, exported, BY)
    assert (plan.changes, plan.secrets) == ((), ())


def test_an_import_says_which_secrets_have_to_be_entered(filled: Project) -> None:
    """Until then an entry with secrets does not count; the others do at once."""
    exported = sections.export_settings(filled)
    other = Project.objects.create(name="other", account_id="222222222222")
    plan = sections.import_settings(other, exported, BY)
    assert [*map(str, plan.secrets)] == LACKING
    assert "enter its client secret after the import" in str(plan.changes[2])
    assert [*map(str, sections.plan_import(other, exported).secrets)] == LACKING
    assert sections.export_settings(other).splitlines()[1:] == exported.splitlines()[1:]
    machine = MachineKey("other", "Orders")
    assert targets.find_entry("sqs", machine) is None
    http = targets.find_exact_entry("http", machine)
    assert http is not None
    assert http.target == {"endpoints": ["https://api.example.com"], "connections": {}}
    assert targets.find_function("bill-me", "arn", machine) is not None
    entry = AuditEntry.objects.get(project=other, target="target sqs")
    assert entry.reason == "http://moto:5000, region eu-west-1"


def test_the_page_leads_to_the_secrets(filled: Project, owner: Client) -> None:
    """The plan lists them, the import leads to the page, which says it, and saving them works."""
    exported = sections.export_settings(filled)
    ProjectSetting.objects.all().delete()
    project_settings.forget_settings()
    shown = text(owner.post(FILE, {"text": exported}))
    assert "5 changes" in shown
    assert "Secrets to enter after the import" in shown
    plan = sections.plan_import(filled, exported)
    answer = owner.post(FILE, {"text": exported, "state": plan.state}, follow=True)
    assert answer.redirect_chain[-1][0] == PAGE
    shown = html.unescape(text(answer))
    assert "Enter these secrets, then the entries count: targets: sqs: access key ID" in shown
    assert shown.count("A file of settings has no secrets.") == 3
    assert "Secrets to enter" in text(owner.post(FILE, {"text": exported}))
    address = f"{EDIT}service/?name=sqs"
    sent = {**SQS, "revision": revision_of(owner, address)}
    assert "got nothing, wanted" in text(owner.post(address, {**sent, "access_key_id": ""}), 422)
    assert owner.post(address, sent).status_code == 302
    entry = targets.find_entry("sqs", MachineKey("default", "Orders"))
    assert entry is not None
    assert entry.target["secret_access_key"] == SECRET


def test_a_secret_stays_at_its_address(filled: Project) -> None:
    """An import that changes where it is sent drops it; any other change keeps it."""
    key = MachineKey("default", "Orders")
    moved = "targets: {sqs: {endpoint_url: 'http://moto:5000', region: eu-west-3}}"
    plan = sections.import_settings(filled, moved, BY)
    assert [*map(str, plan.changes)] == [
        "~ targets: sqs: http://moto:5000, region eu-west-1 -> http://moto:5000, region eu-west-3"
    ]
    assert plan.secrets == ()
    entry = targets.find_entry("sqs", key)
    assert entry is not None
    assert (entry.target["region"], entry.target["secret_access_key"]) == ("eu-west-3", SECRET)
    moved = "targets: {sqs: {endpoint_url: 'http://elsewhere:5000'}}\nconnections: {}\n"
    plan = sections.import_settings(filled, moved, BY)
    assert [*map(str, plan.secrets)] == LACKING[:1]
    assert [change.name for change in plan.changes if not change.after] == ["crm", "shop"]
    assert ProjectSetting.objects.get(kind="target").sealed == ""
    assert targets.find_entry("sqs", key) is None


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("targets: [sqs]", "line 1: targets: this section must have entries by name"),
        ("targets:\n  sqs: http://moto", "line 2: targets: sqs: got a text, wanted members such"),
        (
            "targets:\n  sqs:\n    region: mars",
            "line 3: targets: sqs: region: got 'mars', wanted a region such as eu-west-1",
        ),
        ("targets:\n  sqss: {}", "line 2: targets: sqss: got an unknown name, wanted a service"),
        ("targets:\n  sqs:\n    url: x", "line 3: targets: sqs: url: got an unknown name, wanted"),
        (
            "targets:\n  sqs:\n    access_key_id: x",
            "line 3: targets: sqs: access_key_id: got a secret, wanted none",
        ),
        ("targets: {sqs: {region: 5}}", "line 1: targets: sqs: region: got 5, wanted a text"),
        ("addresses: {}", "line 1: addresses: this section must be a list of texts"),
        ("addresses:\n  - api.example.com", "line 2: addresses: api.example.com: got 'api.example"),
        (
            "addresses:\n  - http://a\n  - http://A/",
            "line 3: addresses: http://a: it stands twice",
        ),
        ("connections: {shop: {}}", "line 1: connections: shop: type: got nothing, wanted one of"),
        ("connections: {shop: {type: NTLM}}", "type: got a text, wanted one of API_KEY"),
        ("connections: {shop: {type: BASIC}}", "shop: username: got nothing, wanted the name of"),
        (
            "connections:\n  shop:\n    type: API_KEY\n    name: a b",
            "line 4: connections: shop: name: got 'a b', wanted a name that can be sent",
        ),
        ("functions: {charge: {}}", "functions: charge: handler: got nothing, wanted an address"),
        ("functions: {charge: {handler: 'os:system'}}", "charge: handler: got 'os:system', wanted"),
        (
            "functions:\n  charge:\n    handler: shop:charge\n    folder: /etc",
            "line 4: functions: charge: folder: Functions in Python have to be allowed",
        ),
        (
            "functions: {a: {handler: 'http://a', memory: true}}",
            "a: memory: got True, wanted a whole number",
        ),
    ],
)
def test_an_import_that_is_refused_changes_nothing(project: Project, sent: str, words: str) -> None:
    """The error names the line, the entry and its member, what it has and what is wanted."""
    first = "retention_days: 3\n"
    with pytest.raises(ValidationException) as refused:
        sections.import_settings(project, f"{sent}\n{first}", BY)
    assert words in refused.value.message
    assert SECRET not in refused.value.message
    assert not ProjectSetting.objects.exists()


def test_a_callable_is_imported_where_its_folder_is_allowed(
    project: Project, settings: Settings, tmp_path: Path
) -> None:
    """And refused with the others once the operator does not allow the folder."""
    settings.STATEYARD_FUNCTION_FOLDERS = [tmp_path]
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "shop.py").write_text("def charge(event, _):\n    return event\n")
    entry = {"handler": "shop:charge", "folder": f"{tmp_path}/src", "timeout": 30.0, "memory": 64}
    sent = documents.write_document({"functions": {"charge": entry}}, "default")
    sections.import_settings(project, sent, BY)
    assert sections.plan_import(project, sent).changes == ()
    assert documents.read_document(sections.export_settings(project)).sections["functions"] == {
        "charge": entry
    }
    other = Project.objects.create(name="other", account_id="222222222222")
    settings.STATEYARD_FUNCTION_FOLDERS = []
    with pytest.raises(ValidationException, match="functions: charge: folder: Functions in Python"):
        sections.import_settings(other, sent, BY)
    assert sections.plan_import(project, sent).changes == ()


def test_what_the_operator_has_set_is_read_only(project: Project, settings: Settings) -> None:
    """A file with an entry of the same name is refused, and nothing of it is imported."""
    settings.STATEYARD_TARGETS = {"projects": {"default": {"sqs": {"endpoint_url": "http://f:1"}}}}
    with pytest.raises(ValidationException, match=r"sqs: The operator has set “sqs”"):
        sections.import_settings(project, "retention_days: 3\ntargets: {sqs: {}}", BY)
    assert not ProjectSetting.objects.exists()


def test_viewers_see_no_file(filled: Project, signed_in: Callable[[str], Client]) -> None:
    """Only owners export and import."""
    del filled
    assert signed_in("editor").get(f"{FILE}export/").status_code == 403
