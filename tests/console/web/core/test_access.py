"""Who may see and do what, and what a page says when it cannot answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.models import AuditEntry, LoginLink
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import CHAIN, MARKUP, page, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project


# -- who may what ---------------------------------------------------------------------------------


def test_a_viewer_sees_no_button_and_is_refused(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """What the role does not allow is not in the page, and answers 403."""
    execution = start(create(project, WAIT), name="x")
    viewer = signed_in("viewer")
    shown = text(viewer.get(page(execution)))
    assert "Stop execution" not in shown
    assert "New execution" not in shown
    for address in ("/machines/new/", "/machines/machine/edit/", "/machines/machine/start/"):
        assert viewer.post(address).status_code == 403
    assert viewer.post(page(execution, "stop/")).status_code == 403
    tried = AuditEntry.objects.latest("pk")
    assert (tried.actor, tried.action) == ("viewer", "Refused")
    assert (tried.target, tried.reason) == (page(execution, "stop/"), "StopExecution")
    assert "role" in text(viewer.get("/machines/new/"), 403)
    form = {"act": "delete", "number": "1"}  # a form that could ask for five actions
    refused = text(viewer.post("/machines/machine/versions/", form), 403)
    assert "<b>A change on this page</b> requires the role <b>editor</b>" in refused
    assert AuditEntry.objects.latest("pk").reason == "any act of the page versions"


def test_a_machine_of_another_project_does_not_exist(project: Project, client: Client) -> None:
    """Names of others are as missing as names of nobody."""
    from console.models import Project as Projects

    other = Projects.objects.create(name="other", account_id="999999999999")
    execution = start(create(other, WAIT, "theirs"), name="x")
    for tab in ("", "grid/", "insights/", "logs/", "versions/", "settings/", "diff/"):
        assert client.get(f"/machines/theirs/{tab}").status_code == 404
    assert client.get(page(execution)).status_code == 404
    assert "theirs" not in text(client.get("/executions/"))


def test_other_regions_have_their_own_machines(project: Project, client: Client) -> None:
    """The region is a part of the address and stays in the links."""
    from console.store.machines import machines

    machines.create_machine(
        project,
        "eu-west-1",
        name="there",
        definition=json.dumps(PASS),
        role_arn="arn:aws:iam::123456789012:role/x",
    )
    assert client.get("/machines/there/").status_code == 404
    shown = text(client.get("/machines/there/?region=eu-west-1"))
    assert "/machines/there/start/?region=eu-west-1" in shown
    lead = client.get("/arn/arn:aws:states:eu-west-1:123456789012:stateMachine:there")
    assert lead["Location"] == "/machines/there/?region=eu-west-1"


def test_a_form_leads_to_a_page_of_its_region(project: Project, client: Client) -> None:
    """Not to the state machine of the same name in the server's region, or to none."""
    from console.store.machines import machines

    machine = machines.create_machine(
        project,
        "eu-west-1",
        name="there",
        definition=json.dumps(WAIT),
        role_arn="arn:aws:iam::123456789012:role/x",
    )
    drain(start(machine, name="x"))
    region = "?region=eu-west-1"
    own, execution = "/machines/there/", "/machines/there/executions/x/"
    forms = [
        (f"{own}start/", {"name": "y"}, "/machines/there/executions/y/"),
        (f"{own}versions/", {"act": "publish"}, f"{own}versions/"),
        (f"{own}settings/", {"act": "tracing", "tracing": "on"}, f"{own}settings/"),
        (f"{own}triggers/1/revoke/", {}, f"{own}triggers/"),
        (f"{execution}note/", {"act": "note", "note": "n"}, execution),
        (f"{execution}pause/", {"clock": "runs"}, execution),
        (f"{execution}resume/", {}, execution),
        (f"{execution}stop/", {}, execution),
        ("/executions/bulk/", {"action": "stop"}, "/executions/"),
        (f"{own}delete/", {}, own),
    ]
    for address, sent, shown in forms:
        assert client.post(address + region, sent)["Location"] == shown + region, address


@pytest.mark.parametrize(
    ("arn", "address"),
    [
        ("arn:aws:states:us-east-1:123456789012:stateMachine:m:3", "/machines/m/versions/"),
        ("arn:aws:states:us-east-1:123456789012:stateMachine:m:live", "/machines/m/versions/"),
        ("arn:aws:events:us-east-1:123456789012:rule/r", "/rules/r/"),
        ("arn:aws:cloudwatch:us-east-1:123456789012:alarm:a b", "/alarms/"),
        ("arn:aws-cn:states:cn-north-1:123456789012:stateMachine:m", "/machines/m/"),
        ("arn:aws-cn:states:cn-north-1:123456789012:execution:m:x", "/machines/m/executions/x/"),
    ],
)
def test_an_arn_of_the_audit_leads_to_its_page(client: Client, arn: str, address: str) -> None:
    """The audit links versions, aliases, rules and alarms, and ARNs of each partition."""
    region = arn.split(":")[3]
    assert client.get(f"/arn/{arn}")["Location"] == f"{address}?region={region}"


def test_every_page_wants_a_login(client: Client, project: Project) -> None:
    """Without a session every address leads to the login page, which leads back."""
    from django.test import Client as Anybody

    nobody = Anybody()
    for address in ("/", "/machines/", "/executions/", "/machines/x/executions/y/_delta"):
        answer = nobody.get(address)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/login/?next=")
    assert "Sign in" in text(nobody.get("/login/"))


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_part_of_a_page_is_refused_without_a_session(project: Project, method: str) -> None:
    """A page that is open when its session ends gets no page of the sign-in into a part of it."""
    from django.test import Client as Anybody

    ask = getattr(Anybody(), method)
    for address in ("/executions/", "/executions/_new", "/palette/", "/_overview"):
        answer = ask(address, HTTP_HX_REQUEST="true")
        assert (answer.status_code, answer.content) == (401, b"")


def test_what_is_sent_without_a_session_is_not_lost_silently(project: Project) -> None:
    """The sign-in says so, and leads to the page that has the form: its target may be no page."""
    from django.test import Client as Anybody

    nobody = Anybody()
    form = "http://testserver/rules/r/?region=eu-west-1"
    answer = nobody.post("/rules/r/switch/", HTTP_REFERER=form)
    assert answer["Location"] == "/login/?next=/rules/r/%3Fregion%3Deu-west-1&unsent=1"
    page = text(nobody.get(answer["Location"]))
    assert "your last action was not performed" in page
    assert "not done" not in text(nobody.get("/login/?next=/rules/r/"))
    elsewhere = nobody.post("/rules/r/switch/", HTTP_REFERER="http://evil.test/rules/r/")
    assert elsewhere["Location"] == "/login/?next=/&unsent=1"


def test_a_login_link_works_once(project: Project, django_user_model: Any) -> None:
    """Who opens it sees a button, which works once; the second use says how to get another."""
    from django.test import Client as Anybody

    from console import access

    user, _, _ = access.first_owner()
    token = access.create_login_link(user)
    first, second = Anybody(), Anybody()
    for scanner in (first, second):
        assert "Sign in as" in text(scanner.get(f"/login/{token}/"))
        assert scanner.head(f"/login/{token}/").status_code == 200
        assert scanner.get("/").status_code == 302
    assert LoginLink.objects.get().used_ms is None
    assert first.post(f"/login/{token}/")["Location"] == "/"
    assert text(first.get("/"))
    for again in (second.get, second.post):
        assert "no longer works" in text(again(f"/login/{token}/"), 410)
    assert LoginLink.objects.get().used_ms
    assert text(second.get("/login/" + "x" * 43 + "/"), 410)


def test_name_and_password_let_in_and_next_stays_local(signed_in: Callable[[str], Client]) -> None:
    """A wrong password keeps the name; a foreign ``next`` leads home."""
    from django.test import Client as Anybody

    signed_in("viewer")
    nobody = Anybody()
    wrong = {"username": "viewer", "password": "no"}
    assert 'value="viewer"' in text(nobody.post("/login/", wrong), 422)
    right = {"username": "viewer", "password": "a long enough password"}
    for after, target in {"//evil.example/": "/", "/machines/": "/machines/"}.items():
        assert nobody.post("/login/", {**right, "next": after})["Location"] == target
    assert nobody.post("/logout/")["Location"] == "/login/"


def test_somebody_without_a_project_is_told_so(db: None, django_user_model: Any) -> None:
    """A user who belongs nowhere gets words, not an error of the server."""
    from django.test import Client as Anybody

    lost = Anybody()
    lost.force_login(django_user_model.objects.create_user("lost"))
    assert "You belong to no project" in text(lost.get("/"), 403)


# -- errors and headers ---------------------------------------------------------------------------


def test_missing_things_have_a_page_that_helps(client: Client) -> None:
    """A 404 names what is missing and offers to look for it."""
    shown = text(client.get("/machines/nowhere/"), 404)
    assert "no state machine “nowhere”" in shown
    assert 'value="nowhere"' in shown
    assert "nowhere" in text(client.get("/arn/nowhere"), 404)
    assert text(client.get("/no/such/page"), 404)


def test_every_answer_has_the_policy(client: Client) -> None:
    """The content security policy stands on pages and on error pages."""
    for address in ("/", "/machines/nowhere/", "/login/"):
        policy = client.get(address)["Content-Security-Policy"]
        assert "'unsafe-inline'" not in policy
        assert "'unsafe-eval'" not in policy
        assert "frame-ancestors 'none'" in policy


def test_pages_have_no_inline_script_or_style(project: Project, client: Client) -> None:
    """Nothing on a page needs an exception from the policy."""
    execution = drain(start(create(project, CHAIN), name="x"))
    tabs = [
        f"/machines/machine/{tab}/"
        for tab in ("definition", "grid", "insights", "logs", "versions")
    ]
    tabs += ["/machines/machine/settings/", "/machines/machine/diff/"]
    for address in ("/", "/machines/new/", *tabs, page(execution)):
        shown = client.get(address).content.decode()
        assert " style=" not in shown
        assert "<style" not in shown
        assert " onclick" not in shown
        for script in shown.split("<script")[1:]:
            assert script.partition(">")[0].strip().startswith("src=")


def test_an_address_of_a_form_says_that_it_is_no_page(client: Client, project: Project) -> None:
    """Somebody pastes a start link into a browser, or comes back to what a form was sent to."""
    from django.test import Client as Anybody

    create(project, PASS)
    for reader, address in (
        (client, "/rules/r/switch/"),
        (client, "/logout/"),
        (Anybody(), "/start/machine/secret"),
    ):
        answer = reader.get(address)
        assert answer["Allow"] == "POST"
        shown = text(answer, 405)
        assert "This address is not a page" in shown
        assert "It accepts only POST requests, not GET." in shown
        assert ("Overview" in shown) is (reader is client)
        assert "Sign in" not in shown


def test_a_broken_view_answers_plainly(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 500 is a styled page without anything of the fault in it."""
    from console.web.search import lists

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(lists, "list_beside_samples", broken)
    client.raise_request_exception = False
    shown = text(client.get("/machines/"), 500)
    assert "Something went wrong" in shown
    assert "secret detail" not in shown


def test_preferences_are_kept_and_lead_back(client: Client) -> None:
    """Theme and clock are cookies; anything else is ignored."""
    answer = client.post("/preferences/", {"theme": "dark", "next": "/machines/"})
    assert (answer["Location"], client.cookies["theme"].value) == ("/machines/", "dark")
    assert 'data-theme="dark"' in text(client.get("/"))
    client.post("/preferences/", {"theme": "<b>", "clock": "local", "next": "https://evil.example"})
    shown = text(client.get("/"))
    assert 'data-theme="dark"' in shown
    assert 'data-clock="local"' in shown


@pytest.mark.slow
@pytest.mark.postgres_too
def test_hostile_texts_are_escaped_everywhere(project: Project, client: Client) -> None:
    """Markup in names, payloads, errors and comments reaches no page unescaped."""
    definition = {
        "Comment": MARKUP,
        "StartAt": MARKUP,
        "States": {
            MARKUP: {"Type": "Pass", "Result": {MARKUP: MARKUP}, "Next": '"><img onerror=x>'},
            '"><img onerror=x>': {"Type": "Fail", "Error": MARKUP, "Cause": MARKUP},
        },
    }
    execution = drain(start(create(project, definition, "Ü🎉"), {MARKUP: MARKUP}, "run🎉"))
    step = f"?step={MARKUP}"
    for address in (
        "/",
        "/machines/Ü🎉/",
        "/machines/Ü🎉/definition/",
        "/machines/Ü🎉/edit/",
        "/machines/Ü🎉/grid/",
        "/machines/Ü🎉/insights/",
        "/machines/Ü🎉/versions/",
        "/machines/Ü🎉/settings/",
        "/machines/Ü🎉/diff/?from=run:run🎉",
        page(execution, step),
        page(execution, f"_step{step}&tab=definition"),
        page(execution, f"_delta?after=0&follow=1&step={MARKUP}"),
        page(execution, "events/2/"),
        page(execution, "?open=2.3.4"),
        f"/executions/?q={MARKUP}",
        f"/machines/{MARKUP.replace('/', '')}/",
    ):
        raw = client.get(address).content.decode()
        assert "<script>alert" not in raw
        assert "<img onerror" not in raw
