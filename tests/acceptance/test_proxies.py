"""The address of a client counts as told by a named proxy, and by nobody else."""

from __future__ import annotations

import http.cookiejar
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.acceptance.server import Server
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize(("proxies", "address"), [("", "127.0.0.1"), ("127.0.0.1", "203.0.113.9")])
def test_a_forwarded_address_counts_from_a_named_proxy_only(
    tmp_path: Path, proxies: str, address: str
) -> None:
    """A password is locked; the log says by whose requests, and what a client adds counts never."""
    server = Server(tmp_path / "data", STATEYARD_PROXIES=proxies, STATEYARD_DATABASE_URL="").start()
    try:
        statuses = [refused(server, f"198.51.100.{number}, 203.0.113.9") for number in range(11)]
        log = server.log()
    finally:
        server.stop()
    assert statuses == [422] * 10 + [429]
    assert f"address={address}" in log


def refused(server: Server, forwarded: str) -> int:
    """Try a wrong password, as forwarded by a proxy on this machine, and return the status."""
    jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(jar)
    with browser.open(f"{server.url}/login/", timeout=PATIENCE_S) as answer:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', answer.read().decode())
    assert token is not None
    form = {"csrfmiddlewaretoken": token[1], "username": "owner", "password": "wrong"}
    request = urllib.request.Request(
        f"{server.url}/login/",
        data=urllib.parse.urlencode(form).encode(),
        headers={"X-Forwarded-For": forwarded},
    )
    with pytest.raises(urllib.error.HTTPError) as error:
        browser.open(request, timeout=PATIENCE_S)
    error.value.close()
    return error.value.code


def test_a_name_in_a_header_counts_from_a_named_proxy_only(tmp_path: Path) -> None:
    """The other end of the connection is the proxy; a forwarded address says nothing of it."""
    server = Server(
        tmp_path / "data",
        STATEYARD_DATABASE_URL="",
        STATEYARD_PROXIES="127.0.0.2",
        STATEYARD_TRUSTED_USER_HEADER="X-Auth-User",
    ).start()
    try:
        owner = ("X-Auth-User", "owner")
        client, proxy = ("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-For", "127.0.0.2")
        for headers in ([owner], [owner, client], [("x-auth-USER", "owner")]):
            answer = get(server, "127.0.0.2", *headers)
            assert answer.status_code == 200
            assert "<bdi>owner</bdi>" in answer.text
        for headers in ([owner], [owner, client], [owner, proxy]):
            assert get(server, "127.0.0.1", *headers).headers["Location"].startswith("/login/")
        for headers in ([], [client], [("X_Auth_User", "owner")]):
            assert get(server, "127.0.0.2", *headers).headers["Location"].startswith("/login/")
        for headers in ([owner, owner], [("X-Auth-User", "stranger")]):
            assert get(server, "127.0.0.2", *headers).status_code == 403
    finally:
        server.stop()


def get(server: Server, address: str, *headers: tuple[str, str]) -> httpx.Response:
    """Return the answer to a connection from an address of this machine."""
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(transport=transport, timeout=PATIENCE_S) as client:
        return client.get(f"{server.url}/machines/", headers=list(headers))
