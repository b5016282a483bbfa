"""Owners add, change, test and remove targets on pages; secrets are never shown."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from console.db import project_settings
from console.integrations import targets
from console.integrations.targets import MachineKey
from console.models import AuditEntry, Membership, Project, ProjectSetting
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_django.fixtures import Settings

SECRET = "never-to-be-seen"
KEYS = {"access_key_id": "AKIANEVERSEEN", "secret_access_key": SECRET}
SQS = {"name": "sqs", "endpoint_url": "http://moto:5000", "region": "eu-west-1", **KEYS}
DEFAULT = MachineKey("default", "Orders")
OAUTH = "OAUTH_CLIENT_CREDENTIALS"
PAGE, EDIT = "/settings/targets/", "/settings/targets/edit/"


def revision_of(client: Client, address: str) -> str:
    """Return the revision that a form was made from."""
    match = re.search(r'name="revision" value="([^"]*)"', text(client.get(address)))
    assert match is not None
    return match[1]


def test_a_service_counts_for_the_next_call(owner: Client, project: Project) -> None:
    """Saved, it is the target of this project's Tasks and of no other's; no page has its secret."""
    Project.objects.create(name="other", account_id="222222222222")
    answer = owner.post(f"{EDIT}service/", SQS, follow=True)
    assert "The AWS service sqs is saved" in text(answer)
    entry = targets.find_entry("sqs", DEFAULT)
    assert entry is not None
    assert entry.target["secret_access_key"] == SECRET
    assert entry.where == "project settings: sqs"
    assert targets.find_entry("sqs", MachineKey("other", "Orders")) is None
    assert targets.find_entry("sns", DEFAULT) is None
    for address in (PAGE, f"{EDIT}service/?name=sqs", "/targets/", "/audit/"):
        shown = text(owner.get(address))
        assert "sqs" in shown
        for secret in KEYS.values():
            assert secret not in shown
    assert "a key in the project settings" in text(owner.get("/targets/"))
    assert SECRET not in str([*ProjectSetting.objects.values(), *AuditEntry.objects.values()])
    audit = AuditEntry.objects.get(action="PutProjectSetting")
    assert (audit.actor, audit.target) == ("owner", "target sqs")
    assert audit.reason == "http://moto:5000, region eu-west-1"


def test_an_empty_secret_keeps_the_stored_one_at_its_address(owner: Client) -> None:
    """A second owner cannot send the stored key to an address of their own."""
    owner.post(f"{EDIT}service/", SQS)
    address = f"{EDIT}service/?name=sqs"
    empty = dict.fromkeys(KEYS, "")
    sent = {**SQS, **empty, "region": "eu-west-3", "revision": revision_of(owner, address)}
    assert owner.post(address, sent).status_code == 302
    entry = targets.find_entry("sqs", DEFAULT)
    assert entry is not None
    assert (entry.target["region"], entry.target["secret_access_key"]) == ("eu-west-3", SECRET)
    sent |= {"endpoint_url": "http://elsewhere:5000", "revision": revision_of(owner, address)}
    refused = text(owner.post(address, sent), 422)
    assert "the stored one is sent to the stored address only" in refused
    half = text(owner.post(address, {**sent, "access_key_id": "AKIA2"}), 422)
    assert "got nothing, wanted the access key ID and secret access key." in half


@pytest.mark.postgres_too
def test_two_owners_at_once(owner: Client) -> None:
    """The second one is told who saved what, and may replace it."""
    owner.post(f"{EDIT}service/", SQS)
    address = f"{EDIT}service/?name=sqs"
    before = revision_of(owner, address)
    owner.post(address, {**SQS, "region": "eu-west-2", "revision": before})
    late = text(owner.post(address, {**SQS, "region": "eu-west-3", "revision": before}), 409)
    assert "eu-west-2" in late
    assert SECRET not in late
    over = re.search(r'name="over" value="([^"]*)"', late)
    assert over is not None
    sent = {**SQS, "region": "eu-west-3", "revision": before, "over": over[1]}
    assert owner.post(address, sent).status_code == 302
    again = owner.post(f"{EDIT}service/", SQS)
    assert again.status_code == 409
    row = project_settings.find_setting(Project.objects.get(), "target", "sqs")
    assert row is not None
    form = {"kind": "service", "name": "sqs", "revision": before}
    assert "was changed meanwhile" in text(owner.post(f"{PAGE}remove/", form, follow=True))
    form["revision"] = row.revision
    assert "sqs is removed" in text(owner.post(f"{PAGE}remove/", form, follow=True))
    assert targets.find_entry("sqs", DEFAULT) is None
    assert owner.get(address).status_code == 404


def test_the_operators_entry_for_the_project_wins(owner: Client, settings: Settings) -> None:
    """It is shown as read-only, hides the page's entry, and nothing can be saved in its place."""
    owner.post(f"{EDIT}service/", SQS)
    owner.post(f"{EDIT}address/", {"name": "https://api.example.com"})
    settings.STATEYARD_TARGETS = {
        "sns": {"endpoint_url": "http://general:1", **KEYS},
        "projects": {
            "default": {
                "sqs": {"endpoint_url": "http://file:1", **KEYS},
                "http": {"endpoints": ["https://file.example.com"]},
            }
        },
    }
    entry = targets.find_entry("sqs", DEFAULT)
    assert entry is not None
    assert entry.target["endpoint_url"] == "http://file:1"
    shown = text(owner.get(PAGE))
    assert "The operator has set “sqs” for this project in targets.json" in shown
    assert "The operator has set “http” for this project in targets.json" in shown
    assert "read-only" in shown
    assert "http://general:1" in shown
    assert "it is read-only" in text(owner.post(f"{EDIT}service/", SQS), 422)


def test_a_general_entry_is_replaced_for_the_project(owner: Client, settings: Settings) -> None:
    """What the operator set for all projects is what a project has without its own."""
    settings.STATEYARD_TARGETS = {
        "*": {"endpoint_url": "http://general:1", **KEYS},
        "http": {"endpoints": ["https://general.example.com"]},
    }
    owner.post(f"{EDIT}service/", SQS)
    owner.post(f"{EDIT}address/", {"name": "https://API.example.com/"})
    sqs, sns = targets.find_entry("sqs", DEFAULT), targets.find_entry("sns", DEFAULT)
    assert sqs is not None
    assert sns is not None
    assert (sqs.target["endpoint_url"], sns.target["endpoint_url"]) == (
        "http://moto:5000",
        "http://general:1",
    )
    http = targets.find_exact_entry("http", DEFAULT)
    assert http is not None
    assert http.target["endpoints"] == ["https://api.example.com"]
    assert "does not use the operator's general addresses" in text(owner.get(PAGE))


CONNECTIONS: list[tuple[dict[str, str], dict[str, Any]]] = [
    (
        {"type": "API_KEY", "header": "X-Key", "secret": SECRET},
        {"type": "API_KEY", "name": "X-Key", "value": SECRET},
    ),
    (
        {"type": "BASIC", "username": "yard", "secret": SECRET},
        {"type": "BASIC", "username": "yard", "password": SECRET},
    ),
    (
        {
            "type": "OAUTH_CLIENT_CREDENTIALS",
            "authorization_endpoint": "https://login.example.com/token",
            "method": "POST",
            "client_id": "yard",
            "scope": "read",
            "secret": SECRET,
        },
        {
            "type": "OAUTH_CLIENT_CREDENTIALS",
            "OAuthParameters": {
                "AuthorizationEndpoint": "https://login.example.com/token",
                "HttpMethod": "POST",
                "ClientParameters": {"ClientID": "yard", "ClientSecret": SECRET},
                "OAuthHttpParameters": {"BodyParameters": [{"Key": "scope", "Value": "read"}]},
            },
        },
    ),
]


@pytest.mark.parametrize(("sent", "expected"), CONNECTIONS)
def test_connections(owner: Client, sent: dict[str, str], expected: dict[str, Any]) -> None:
    """Each type becomes an entry of ``http``; its form shows all but the secret."""
    answer = owner.post(f"{EDIT}connection/", {"name": "shop", **sent})
    assert answer.status_code == 302, text(answer)
    http = targets.find_exact_entry("http", DEFAULT)
    assert http is not None
    assert http.target["connections"] == {"shop": expected}
    form = text(owner.get(f"{EDIT}connection/?name=shop"))
    assert SECRET not in form
    for value in set(sent.values()) - {SECRET}:
        assert value in form
    assert text(owner.get(f"{EDIT}connection/?type={sent['type']}")).count('type="password"') == 1
    keep = {"secret": "", "revision": revision_of(owner, f"{EDIT}connection/?name=shop")}
    assert owner.post(f"{EDIT}connection/?name=shop", {**sent, **keep}).status_code == 302
    http = targets.find_exact_entry("http", DEFAULT)
    assert http is not None
    assert http.target["connections"] == {"shop": expected}


WRONG: list[tuple[str, dict[str, str], str, str]] = [
    (
        *("service", {**SQS, "name": "sqss"}, "name"),
        "Service: got an unknown name, wanted a service of boto3",
    ),
    ("service", {**SQS, "name": ""}, "name", "Service: got nothing, wanted a service such as sqs"),
    ("service", {**SQS, "name": "http"}, "name", "Service: got 'http', wanted a se"),
    (
        *("service", {**SQS, "endpoint_url": "moto:5000"}, "endpoint_url"),
        "Endpoint: got 'moto:5000', wanted an address such as http://moto:5000",
    ),
    (
        *("service", {**SQS, "endpoint_url": "http://a:b@moto"}, "endpoint_url"),
        "has no user and no password",
    ),
    (
        *("service", {**SQS, "region": "mars"}, "region"),
        "Region: got 'mars', wanted a region such as eu-west-1.",
    ),
    (
        *("service", {**SQS, "secret_access_key": ""}, "secret_access_key"),
        "got nothing, wanted the access key ID and secret access key.",
    ),
    ("address", {"name": "api.example.com"}, "name", "Address: got 'api.example.com', wanted"),
    ("address", {"name": "https://api.example.com/path"}, "name", "wanted scheme and host only"),
    ("connection", {"name": "a b", "secret": SECRET}, "name", "got 'a b', wanted 1 to 64 letters"),
    (
        *("connection", {"name": "a", "type": "NTLM", "secret": SECRET}, ""),
        "type: got 'NTLM', wanted one of API_KEY",
    ),
    (
        *("connection", {"name": "a", "type": "BASIC", "username": "x"}, "secret"),
        "Password: got nothing, wanted the password.",
    ),
    (
        *("connection", {"name": "a", "type": "BASIC", "secret": SECRET}, "username"),
        "User: got nothing, wanted the name of a user.",
    ),
    ("connection", {"name": "a", "header": "X Y", "secret": SECRET}, "header", "sent as a header"),
    ("connection", {"name": "a", "secret": f"{SECRET}\n"}, "secret", "sent as a header"),
    (
        *("connection", {"name": "a", "type": OAUTH, "secret": SECRET}, "authorization_endpoint"),
        "Authorization endpoint: got nothing, wanted an address such as https://",
    ),
    ("function", {"name": "activity:x", "address": "http://a"}, "name", "registered by the oper"),
    ("function", {"name": "a b", "address": "http://a"}, "name", "Name: got 'a b', wanted the"),
    ("function", {"name": "a", "address": "os:system"}, "address", "Address: got 'os:system', wan"),
    ("function", {"name": "a", "address": "http://a/?code=1"}, "address", "without a query"),
    (
        *("function", {"name": "a", "type": "python", "handler": "a:b"}, ""),
        "STATEYARD_FUNCTION_FOLDERS",
    ),
]


@pytest.mark.parametrize(("kind", "sent", "field", "expected"), WRONG)
def test_what_is_wrong_is_refused(
    owner: Client, kind: str, sent: dict[str, str], field: str, expected: str
) -> None:
    """At its field, which has the focus; without the secret, and nothing is stored."""
    answer = owner.post(f"{EDIT}{kind}/", sent)
    shown = text(answer, 422)
    assert SECRET not in shown
    assert not ProjectSetting.objects.exists()
    if not field:
        assert expected in shown
        return
    problem = re.search(r'<p class="error" id="problem-(\w+)" role="alert">([^<]*)</p>', shown)
    assert problem is not None
    assert (problem[1], shown.count('class="error"')) == (field, 1)
    assert expected in html.unescape(problem[2])
    box = re.search(rf'<input [^>]*name="{field}"[^>]*>', shown)
    assert box is not None
    assert re.search(rf'aria-describedby="[^"]*problem-{field}"', box[0])
    assert 'aria-invalid="true" autofocus' in box[0]


def test_the_folder_of_a_callable_is_refused_at_its_field(
    owner: Client, settings: Settings, tmp_path: Path
) -> None:
    """The error names what was sent and what the operator allows."""
    settings.STATEYARD_FUNCTION_FOLDERS = [tmp_path]
    (tmp_path / "shop.py").write_text("def charge(event, _):\n    return event\n")
    sent = {
        "name": "charge",
        "type": "python",
        "folder": str(tmp_path),
        "handler": "shop:charge",
    }
    for field, value, words in (
        ("folder", "/etc", f"Folder: got '/etc', wanted one of {tmp_path}."),
        ("subfolder", "../x", "Subfolder: got '../x', wanted a folder in the selected folder."),
        ("subfolder", "src", f"There is no folder {tmp_path}/src."),
        ("handler", "shop", "Handler: got 'shop', wanted module:callable."),
        ("handler", "shop:refund", "shop defines no refund at its top level."),
        ("handler", "shops:charge", f"The folder {tmp_path} has no module shops."),
        ("timeout", "soon", "Timeout in seconds: got 'soon', wanted a number."),
        ("timeout", "-1", "Timeout in seconds: got"),
        ("memory", "1.5", "Memory in MB: got '1.5', wanted a number."),
    ):
        shown = html.unescape(text(owner.post(f"{EDIT}function/", {**sent, field: value}), 422))
        assert f'<p class="error" id="problem-{field}" role="alert">{words}' in shown


def test_only_owners_change_them(
    owner: Client, project: Project, signed_in: Callable[[str], Client], django_user_model: Any
) -> None:
    """Others see the list; the owner of another project sees nothing of it."""
    owner.post(f"{EDIT}service/", SQS)
    for role in ("viewer", "editor"):
        client = signed_in(role)
        shown = text(client.get(PAGE))
        assert "http://moto:5000" in shown
        assert "Remove" not in shown
        assert client.get(f"{EDIT}service/").status_code == 403
        for act in ("edit/service/", "remove/", "test/"):
            assert client.post(f"{PAGE}{act}", {"kind": "service", **SQS}).status_code == 403
    other = Project.objects.create(name="other", account_id="222222222222")
    stranger = Client()
    user = django_user_model.objects.create_user("stranger")
    Membership.objects.create(project=other, user=user, role="owner")
    stranger.force_login(user)
    assert "moto" not in text(stranger.get(PAGE))
    assert stranger.get(f"{EDIT}service/?name=sqs").status_code == 404
    form = {"kind": "service", "name": "sqs", "revision": ""}
    assert "There is no target" in text(stranger.post(f"{PAGE}remove/", form, follow=True))
    assert "was removed meanwhile" in text(stranger.post(f"{PAGE}test/", form, follow=True))
    assert owner.get(f"{EDIT}everything/").status_code == 404
    assert targets.find_entry("sqs", DEFAULT) is not None


def test_a_function_with_an_address(owner: Client) -> None:
    """It counts for the next call, also by a pattern, and can be changed."""
    url = "http://billing:9000/invocations"
    assert owner.post(f"{EDIT}function/", {"name": "bill-*", "address": url}).status_code == 302
    function = targets.find_function("bill-me", "arn", DEFAULT)
    assert function is not None
    assert (function.target, function.where) == (url, "project settings: bill-*")
    assert targets.find_function("bill-me", "arn", MachineKey("other")) is None
    assert url in text(owner.get(f"{EDIT}function/?name=bill-*"))
    assert url in text(owner.get("/targets/"))


def test_a_callable_in_an_allowed_folder(owner: Client, settings: Settings, tmp_path: Path) -> None:
    """It has a process of its own in its folder; the form offers the operator's folders."""
    settings.STATEYARD_FUNCTION_FOLDERS = [tmp_path]
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "shop.py").write_text("def charge(event, _):\n    return event\n")
    sent = {
        "name": "charge",
        "type": "python",
        "folder": str(tmp_path),
        "subfolder": "src",
        "handler": "shop:charge",
        "timeout": "30",
        "memory": "128",
    }
    answer = owner.post(f"{EDIT}function/", sent)
    assert answer.status_code == 302, text(answer)
    function = targets.find_function("charge", "arn", DEFAULT)
    assert function is not None
    options = function.options
    assert (options.process, options.folder) == ("own", str(tmp_path / "src"))
    assert (options.timeout_s, options.memory_mb) == (30, 128)
    form = text(owner.get(f"{EDIT}function/?name=charge"))
    assert 'value="src"' in form
    assert f"<option selected>{tmp_path}</option>" in form
    settings.STATEYARD_FUNCTION_FOLDERS = []
    assert targets.find_function("charge", "arn", DEFAULT) is None
    assert "have to be allowed by the operator" in text(owner.get(PAGE))
