"""People sign in at a provider, and their rights follow what it says of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.acceptance.sign_in.conftest import SignInYard

pytestmark = [pytest.mark.acceptance]
INVALID = "is not valid for this sign-in"


def person(name: str, *groups: str, **more: Any) -> dict[str, Any]:
    """Return the claims of a person."""
    email = f"{name}@example.com"
    return {"preferred_username": name, "email": email, "groups": list(groups), **more}


def sign_in(yard: SignInYard, who: str, provider_id: str = "corp") -> tuple[httpx.Client, Any]:
    """Return the browser of a person after their sign-in, and its last answer."""
    client = yard.visitor(who)
    return client, client.get(f"/sign-in/{provider_id}/")


def form_token(client: httpx.Client, path: str) -> str:
    """Return what the forms of a page send against forged requests."""
    (token, *_) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', client.get(path).text)
    return str(token)


def is_signed_in(client: httpx.Client) -> bool:
    """Return whether the browser has a session."""
    answer = client.get("/preferences/", follow_redirects=False)
    return "/login/" not in answer.headers.get("Location", "")


def test_the_first_sign_in_makes_a_member(yard: SignInYard) -> None:
    """With the highest role of the groups; a project that is not there is skipped."""
    yard.corp.control(a1=person("ana", "readers", "leads", "dev", "unheard of"))
    client, answer = sign_in(yard, "a1")
    assert answer.status_code == 200
    assert answer.url.path == "/"
    assert is_signed_in(client)
    mine = {project: role for (name, project), role in yard.roles().items() if name == "ana"}
    assert mine == {"default": "owner"}
    assert ("provider corp", "ana", "role owner") in yard.audit("PutMember")
    (signed_in,) = [row for row in yard.audit("SignIn") if row[0] == "ana"]
    assert signed_in[2].startswith("by provider corp, from 127.0.0.1")


def test_the_sign_in_leads_back(yard: SignInYard) -> None:
    """To the page that asked for it, and to no other server."""
    yard.corp.control(b1=person("bea", "readers"))
    client = yard.visitor("b1")
    page = client.get("/machines/?q=x")
    assert page.url.path == "/login/"
    address = "/sign-in/corp/?next=/machines/%3Fq%3Dx"
    assert f'href="{address.replace("/machines", "%2Fmachines").replace("s/%3F", "s%2F%3F")}"' in (
        page.text
    )
    assert str(client.get(address).url) == f"{yard.server.url}/machines/?q=x"
    for other in ("https://elsewhere.example/", "//elsewhere.example/", "machines/"):
        assert client.get("/sign-in/corp/", params={"next": other}).url.path == "/"


def test_rights_follow_the_groups_at_each_sign_in(yard: SignInYard) -> None:
    """A lower role, then none: the session and the keys end, even those of the last owner."""
    yard.corp.control(c1=person("cid", "leads"))
    client, _ = sign_in(yard, "c1")
    sent = {"csrfmiddlewaretoken": form_token(client, "/keys/"), "description": "of cid"}
    assert client.post("/keys/", data=sent).status_code == 200
    assert yard.rows("SELECT 1 FROM console_accesskey WHERE description = 'of cid'")
    yard.corp.control(c1=person("cid", "dev"))
    sign_in(yard, "c1")
    assert yard.roles()["cid", "default"] == "editor"
    assert is_signed_in(client)
    yard.corp.control(c1=person("cid"))
    _, answer = sign_in(yard, "c1")
    assert answer.status_code == 403
    assert "None of your groups has access" in answer.text
    assert ("cid", "default") not in yard.roles()
    assert not is_signed_in(client)
    assert not yard.rows("SELECT 1 FROM console_accesskey WHERE description = 'of cid'")
    assert ("provider corp", "cid", "by corp: no group with access") in yard.audit("RefuseSignIn")
    yard.corp.control(c1=person("cid", "readers"))
    sign_in(yard, "c1")
    assert yard.roles()["cid", "default"] == "viewer"


def test_a_stranger_gets_no_account(yard: SignInYard) -> None:
    """Nothing is kept of a person whose groups have no access."""
    yard.corp.control(d1=person("dora", "unheard of"))
    client, answer = sign_in(yard, "d1")
    assert answer.status_code == 403
    assert not is_signed_in(client)
    assert not yard.rows("SELECT 1 FROM auth_user WHERE username LIKE 'dora%'")


def test_groups_appoint_administrators(yard: SignInYard) -> None:
    """Without a project as well; out of the group, they are none any more."""
    yard.corp.control(e1=person("eve", "platform"))
    client, answer = sign_in(yard, "e1")
    assert client.get("/operations/").status_code == 200
    yard.corp.control(e1=person("eve"))
    _, answer = sign_in(yard, "e1")
    assert answer.status_code == 403
    assert not is_signed_in(client)


def test_two_providers_never_share_an_account(yard: SignInYard) -> None:
    """The same subject, name and verified address at two providers are two people."""
    same = person("finn", "leads", email_verified=True)
    yard.corp.control(f1=same)
    yard.partner.control(f1=same)
    sign_in(yard, "f1")
    sign_in(yard, "f1", "partner")
    roles = yard.roles()
    assert roles["finn", "default"] == "owner"
    assert roles["finn@partner", "default"] == "viewer"


def test_a_provider_opens_no_account_of_this_server(yard: SignInYard) -> None:
    """The first owner has a name, and who has it at a provider gets another one."""
    yard.corp.control(g1=person("owner", "readers"))
    sign_in(yard, "g1")
    assert yard.roles()["owner@corp", "default"] == "viewer"


def test_people_who_swap_their_names_keep_their_accounts(yard: SignInYard) -> None:
    """The subject counts, and neither the name nor the address."""
    yard.corp.control(h1=person("hal", "leads"), h2=person("hugo", "readers"))
    sign_in(yard, "h1")
    sign_in(yard, "h2")
    yard.corp.control(h1=person("hugo", "leads"), h2=person("hal", "readers"))
    hal, _ = sign_in(yard, "h1")
    sign_in(yard, "h2")
    roles = yard.roles()
    assert (roles["hal", "default"], roles["hugo", "default"]) == ("owner", "viewer")
    assert "<bdi>hal</bdi>" in hal.get("/members/").text
    assert [row[0] for row in yard.audit("SignIn") if row[0] in ("hal", "hugo")] == [
        *("hal", "hugo", "hal", "hugo")
    ]


def test_who_signs_in_as_another_person_leaves_the_first_session(yard: SignInYard) -> None:
    """One browser has one person."""
    yard.corp.control(i1=person("ida", "leads"), i2=person("ivo", "readers"))
    client, _ = sign_in(yard, "i1")
    other = yard.visitor("i2")
    other.cookies.set("stateyard_session", client.cookies["stateyard_session"], domain="127.0.0.1")
    assert other.get("/sign-in/corp/").status_code == 200
    assert other.cookies["stateyard_session"] != client.cookies["stateyard_session"]
    assert "Create invitation" not in other.get("/members/").text
    assert not is_signed_in(client)


@pytest.mark.parametrize(
    "falsify",
    [
        *("issuer", "audience", "authorized party", "nonce", "no nonce", "expired", "no end"),
        *("unsigned", "signature", "no ID token", "subject", "discovery"),
    ],
)
def test_a_false_answer_is_refused(yard: SignInYard, falsify: str) -> None:
    """On a page that says so, with the reason in the log; no account is made."""
    yard.corp.control(falsify, j1=person("jon", "leads"))
    client, answer = sign_in(yard, "j1")
    assert answer.status_code == 403
    assert f"Corp SSO {INVALID}" in answer.text
    assert not is_signed_in(client)
    assert not yard.rows("SELECT 1 FROM auth_user WHERE username LIKE 'jon%'")
    yard.corp.control()


def test_an_answer_counts_in_its_browser_and_once(yard: SignInYard) -> None:
    """Neither another person's browser nor a second press takes it."""
    yard.corp.control(k1=person("kim", "leads"))
    client = yard.visitor("k1")
    answer = client.get("/sign-in/corp/", follow_redirects=False)
    while "/callback/" not in answer.headers["Location"]:
        assert answer.next_request is not None
        answer = client.send(answer.next_request, follow_redirects=False)
    address = answer.headers["Location"]
    victim = yard.visitor()
    refused = victim.get(address)
    assert (refused.status_code, is_signed_in(victim)) == (403, False)
    assert "begun in another browser" in refused.text
    assert client.get(address).status_code == 200
    assert "was used before" in client.get(address).text
    # nor does another provider's address
    assert client.get(address.replace("/corp/", "/partner/")).status_code == 403


def test_a_cancelled_sign_in_is_said(yard: SignInYard) -> None:
    """It is no error of the server."""
    _, answer = sign_in(yard, "")
    assert answer.status_code == 403
    assert "You cancelled the sign-in at Corp SSO." in answer.text


def test_a_link_of_another_site_begins_nothing(yard: SignInYard) -> None:
    """It leads to the sign-in page, where a person clicks."""
    yard.corp.control(l1=person("lea", "leads"))
    client = yard.visitor("l1")
    answer = client.get("/sign-in/corp/", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.url.path == "/login/"
    assert client.get("/sign-in/none/").status_code == 404


def test_nobody_makes_a_way_into_a_provider_s_account(yard: SignInYard) -> None:
    """No password of one's own; no key by an owner; no invitation takes a closed account over."""
    yard.corp.control(m1=person("mia", "leads"), m2=person("max", "dev"))
    owner, _ = sign_in(yard, "m1")
    member, _ = sign_in(yard, "m2")
    assert member.get("/password/").status_code == 403
    assert 'href="/password/' not in member.get("/").text
    assert "?member=max" not in owner.get("/members/").text
    token = form_token(owner, "/keys/")
    sent = {"csrfmiddlewaretoken": token, "member": "max"}
    assert owner.post("/keys/", data=sent).status_code == 422
    yard.corp.control(m2=person("max"))
    sign_in(yard, "m2")
    invited = {"csrfmiddlewaretoken": token, "name": "max", "role": "viewer", "hours": "24"}
    link = owner.post("/members/invite/", data=invited).text
    (path, *_) = re.findall(r"/invitation/[\w-]{40,}/", link)
    assert "Sign in as" in yard.visitor().get(path).text


def test_a_provider_out_of_reach_is_said(yard: SignInYard) -> None:
    """Passwords and login links go on."""
    _, answer = sign_in(yard, "", "gone")
    assert answer.status_code == 502
    assert "gone could not be reached" in answer.text
