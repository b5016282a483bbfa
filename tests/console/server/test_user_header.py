"""A person's name in a header counts from a proxy's own address, and from nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from console.server.user_header import AMBIGUOUS, USER, UserHeader
from tests.loops import looped

PROXIES = ["10.0.0.0/8", "192.0.2.1", "2001:db8::1"]


def seen(client: Any, *headers: tuple[bytes, bytes], kind: str = "http") -> dict[str, Any]:
    """Return the scope that the application gets."""
    scopes: list[dict[str, Any]] = []

    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
        del receive, send
        scopes.append(scope)

    scope = {"type": kind, "client": client, "headers": [(b"accept", b"*/*"), *headers]}

    async def nothing(*_: Any) -> dict[str, Any]:
        return {}

    async def sent(_: dict[str, Any]) -> None:
        return

    wrapped = UserHeader(application, "X-Forwarded-User", PROXIES)
    looped(lambda: wrapped(scope, nothing, sent))
    return scopes[0]


@pytest.mark.parametrize("address", ["10.1.2.3", "192.0.2.1", "2001:db8::1", "::ffff:10.0.0.1"])
def test_a_proxy_names_a_person(address: str) -> None:
    """Whatever the case of the header; the application finds the name in its scope only."""
    scope = seen((address, 5), (b"X-Forwarded-USER", "añá ".encode()))
    assert scope[USER] == "añá"
    assert scope["headers"] == [(b"accept", b"*/*")]


@pytest.mark.parametrize(
    "client", [("11.0.0.1", 5), ("192.0.2.2", 5), ("2001:db8::2", 5), ("::1", 5), ("", 0), None]
)
def test_the_header_of_anybody_else_is_dropped(client: Any) -> None:
    """What a client says about its own address counts for nothing."""
    forwarded = (b"x-forwarded-for", b"10.0.0.1")
    scope = seen(client, forwarded, (b"x-forwarded-user", b"ana"))
    assert USER not in scope
    assert scope["headers"] == [(b"accept", b"*/*"), forwarded]


def test_two_names_are_none() -> None:
    """The proxy added its header to one of the client's; bytes that are no text neither."""
    proxy = ("10.0.0.1", 5)
    twice = seen(proxy, (b"x-forwarded-user", b"ana"), (b"x-forwarded-user", b"root"))
    assert twice[USER] == AMBIGUOUS
    assert seen(proxy, (b"x-forwarded-user", b"\xff"))[USER] == AMBIGUOUS
    assert seen(proxy, (b"x_forwarded_user", b"ana")).get(USER) is None


def test_other_requests_pass() -> None:
    """Without the header, and what is no request of HTTP."""
    assert USER not in seen(("10.0.0.1", 5))
    assert USER not in seen(None, kind="lifespan")
