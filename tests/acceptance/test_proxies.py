"""The address of a client counts as told by a named proxy, and by nobody else."""

from __future__ import annotations

import http.cookiejar
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.server import Server

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
    with browser.open(f"{server.url}/login/", timeout=20) as answer:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', answer.read().decode())
    assert token is not None
    form = {"csrfmiddlewaretoken": token[1], "username": "owner", "password": "wrong"}
    request = urllib.request.Request(
        f"{server.url}/login/",
        data=urllib.parse.urlencode(form).encode(),
        headers={"X-Forwarded-For": forwarded},
    )
    with pytest.raises(urllib.error.HTTPError) as error:
        browser.open(request, timeout=20)
    error.value.close()
    return error.value.code
