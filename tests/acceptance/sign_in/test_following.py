"""Rights follow the claims within 60 s, without a sign-in, and end when the provider says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.acceptance.sign_in.test_sign_in import form_token, is_signed_in, person, sign_in
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.acceptance.sign_in.conftest import SignInYard

pytestmark = [pytest.mark.acceptance]
WITHIN_S = 60.0


def new_key(yard: SignInYard, client: httpx.Client) -> Any:
    """Return an API client with a new access key of a person."""
    sent = {"csrfmiddlewaretoken": form_token(client, "/keys/"), "description": "of a test"}
    shown = client.post("/keys/", data=sent).text
    key = re.search(r"AKIA[A-Z2-7]{16}", shown)
    secret = re.search(r"(?<![\w+/])[A-Za-z0-9+/]{40}(?![\w+/])", shown)
    assert key
    assert secret
    return yard.server.client(key=key[0], secret=secret[0])


def is_refused(api: Any) -> bool:
    """Return whether a call with a key is refused."""
    try:
        api.list_state_machines()
    except ClientError as error:
        return bool(error.response["Error"]["Code"] == "UnrecognizedClientException")
    return False


def give(owner: httpx.Client, group: str, role: str, project: str = "default") -> None:
    """Give a group of the first provider a role on the page Sign-in."""
    sent = {"provider": "corp", "group": group, "project": project, "role": role}
    sent["csrfmiddlewaretoken"] = form_token(owner, "/sign-in/")
    assert owner.post("/sign-in/", data=sent).status_code == 200


def test_rights_follow_within_a_minute(yard: SignInYard) -> None:
    """Of people who stay signed in: pages, polls and keys of those who lost their groups stop."""
    yard.corp.control(
        n1=person("nora", "platform", "leads"),
        n2=person("nelly", "leads"),
        n3=person("nick", "leads"),
        n4=person("nina", "leads"),
        n5=person("noel", "testers"),
        n6=person("nuno", "leads"),
    )
    root, _ = sign_in(yard, "n1")
    give(root, "testers", "editor")
    browsers = {who: sign_in(yard, who)[0] for who in ("n2", "n3", "n4", "n5", "n6")}
    names = {name for name, project in yard.roles() if project == "default"}
    assert {"nelly", "nick", "nina", "noel", "nuno"} <= names  # nobody has a name taken before
    assert yard.roles()["noel", "default"] == "editor"
    keys = {who: new_key(yard, browsers[who]) for who in ("n2", "n3", "n6")}
    assert [is_refused(key) for key in keys.values()] == [False] * 3
    (row,) = re.findall(r'name="remove" value="(\d+)"', root.get("/sign-in/").text)
    assert "within a minute" in root.get("/sign-in/").text
    sent = {"csrfmiddlewaretoken": form_token(root, "/sign-in/"), "remove": row}
    assert root.post("/sign-in/", data=sent).status_code == 200
    yard.corp.control(n2=person("nelly"), n3=None, n4=person("nina", "readers"))
    poll = {"HX-Request": "true"}

    def followed() -> bool:
        ended = [who for who in ("n2", "n3", "n5") if is_signed_in(browsers[who])]
        return (
            not ended
            and is_refused(keys["n2"])
            and is_refused(keys["n3"])
            and yard.roles()["nina", "default"] == "viewer"
        )

    wait_until(followed, WITHIN_S)
    assert browsers["n2"].get("/_overview", headers=poll).status_code == 401
    assert ("nelly", "default") not in yard.roles()
    assert ("noel", "default") not in yard.roles()
    assert yard.audit("EndSignIn")[-3:]
    assert is_signed_in(browsers["n4"])
    assert is_signed_in(browsers["n6"])
    assert not is_refused(keys["n6"])
    # the account of n3 is there again: a new sign-in lets the key work again
    yard.corp.control(n3=person("nick", "leads"))
    sign_in(yard, "n3")
    wait_until(lambda: not is_refused(keys["n3"]), WITHIN_S)


def test_a_provider_ends_sessions_by_itself(yard: SignInYard) -> None:
    """A person who signs out there is signed out here; a logout token counts once, if at all."""
    yard.corp.control(o1=person("olga", "leads"), o2=person("otto", "leads"))
    olga, _ = sign_in(yard, "o1")
    otto, _ = sign_in(yard, "o2")
    page = olga.get(f"{yard.corp.issuer}/session/end").text
    fields = dict(re.findall(r'name="(\w+)" value="([^"]+)"', page))
    sent = {**fields, "logout": "yes"}
    assert olga.post(f"{yard.corp.issuer}/session/end/confirm", data=sent).status_code == 200
    wait_until(lambda: not is_signed_in(olga), WITHIN_S)
    assert is_signed_in(otto)
    for falsify in (
        *("issuer", "audience", "unsigned", "signature", "expired"),
        *("nonce", "no event", "no jti", "nobody", "old"),
    ):
        assert send_logout(yard, "o2", falsify).status_code == 400, falsify
    assert is_signed_in(otto)
    token = yard.corp.logout_token("o2")
    address = f"{yard.server.url}/sign-in/corp/logout/"
    assert httpx.post(address, data={"logout_token": token}).status_code == 200
    assert not is_signed_in(otto)
    sign_in(yard, "o2")
    assert httpx.post(address, data={"logout_token": token}).status_code == 400
    elsewhere = f"{yard.server.url}/sign-in/partner/logout/"
    token = yard.corp.logout_token("o2")
    assert httpx.post(elsewhere, data={"logout_token": token}).status_code == 400


def send_logout(yard: SignInYard, who: str, falsify: str) -> httpx.Response:
    """Return the answer to a falsified logout token."""
    sent = {"logout_token": yard.corp.logout_token(who, falsify)}
    return httpx.post(f"{yard.server.url}/sign-in/corp/logout/", data=sent)
