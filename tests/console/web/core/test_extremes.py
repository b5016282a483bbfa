"""Every page answers any value in its address and its query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from console.web.core.numbers import whole_number
from tests.chaos.fuzz import addresses, asked_names
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import CHAIN, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

HUGE = ("9" * 19, "9" * 25, "9" * 5_000, "-1", "٣", "1e308", "2026-99-99T00:00", "\x00")
KNOWN = {"machine": "machine", "execution": "run", "field": "input", "kind": "graph.svg"}


@pytest.fixture
def patient(signed_in: Callable[[str], Client], project: Project) -> Client:
    """A client of an owner to whom a failure is an answer, with an execution to look at."""
    drain(start(create(project, CHAIN), name="run"))
    client = signed_in("owner")
    client.raise_request_exception = False
    return client


@pytest.mark.slow
@pytest.mark.parametrize("value", HUGE, ids=lambda value: ascii(value[:25]))
@pytest.mark.postgres_too
def test_every_page_answers_any_value_of_all_that_it_reads(patient: Client, value: str) -> None:
    """Each value in every name of a query that any page knows, at every address."""
    asked = {name: value for name in asked_names() if name != "region"}
    for route in sorted(addresses()):
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda match: KNOWN.get(match[1], "1"), route)
        answer: Any = patient.get(path, asked)
        if answer.streaming:
            answer.close()
        assert answer.status_code < 500, (path, answer.content[:300])


@pytest.mark.parametrize("digits", [19, 23, 400, 5_000])
@pytest.mark.postgres_too
def test_an_address_with_a_number_that_no_row_has_is_not_there(
    patient: Client, digits: int
) -> None:
    """A page of 404, as for any address that leads nowhere."""
    for route in sorted(addresses()):
        if "<number:" not in route:
            continue
        filled = route.replace("<number:number>", "9" * digits)
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda match: KNOWN.get(match[1], "1"), filled)
        assert "Page not found" in text(patient.get(path), 404)


@pytest.mark.parametrize("share", ["9" * 19, "9" * 5_000, "٣", "-1", "101", "1e2"])
@pytest.mark.postgres_too
def test_a_share_that_is_none_is_told(patient: Client, project: Project, share: str) -> None:
    """The form comes back with the value sent and the accepted ones."""
    del project
    address = reverse("versions", args=["machine"])
    typed: dict[str, Any] = {"act": "create", "name": "live", "first": "1", "second": "2"}
    said = text(patient.post(address, {**typed, "share": share}), 422)
    assert "Enter a whole number from 0 to 100" in said


@pytest.mark.parametrize(
    "typed",
    [
        {"act": "create", "name": "live", "first": "9" * 5_000},
        {"act": "create", "name": "live", "first": "1", "second": "9" * 5_000, "share": "5"},
        {"act": "delete-version", "number": "9" * 5_000},
    ],
)
@pytest.mark.postgres_too
def test_a_version_with_a_number_that_none_has_is_not_there(
    patient: Client, project: Project, typed: dict[str, str]
) -> None:
    """Python reads no number of more than 4,300 digits."""
    del project
    assert patient.post(reverse("versions", args=["machine"]), typed).status_code < 500


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("0", 0),
        ("017", 17),
        ("9" * 18, 10**18 - 1),
        *((value, None) for value in (*HUGE, "", " 1")),
    ],
)
def test_a_whole_number_is_one_that_a_column_holds(written: str, number: int | None) -> None:
    """Nothing but digits of ASCII, and not more than 64 bits hold."""
    assert whole_number(written) == number


@pytest.mark.postgres_too
def test_a_role_that_no_column_holds_is_told(patient: Client) -> None:
    """The editor says so, and keeps what was typed."""
    role = "arn:aws:iam::123456789012:role/" + "x" * 400
    typed = {
        "name": "long",
        "text": '{"StartAt":"P","States":{"P":{"Type":"Succeed"}}}',
        "role": role,
    }
    assert "Invalid Role Arn" in text(patient.post(reverse("new"), typed), 422)


@pytest.mark.postgres_too
def test_a_nul_is_a_bad_request_wherever_it_stands(patient: Client) -> None:
    """No text of PostgreSQL holds one: in address, query, form and cookie."""
    refused = "Bad request"
    assert refused in text(patient.get("/executions/", {"find": "a\0b"}), 400)
    assert refused in text(patient.get("/machines/a%00b/"), 400)
    assert refused in text(patient.post(reverse("new"), "name=a%00b", _FORM), 400)
    assert refused in text(patient.post(reverse("new"), b"name=a\0b", _FORM), 400)
    assert refused in text(patient.post(reverse("new"), {"name": "a\0b"}), 400)
    assert refused in text(patient.post(reverse("new"), {"a\0b": "name"}), 400)
    patient.cookies["stateyard_session"] = "abcdefgh\0"
    assert refused in text(patient.get("/"), 400)


_FORM = "application/x-www-form-urlencoded"


@pytest.mark.slow
@pytest.mark.parametrize(
    "following", ["x", "é", "overview", "//evil.org", "javascript:x", "a" * 99]
)
@pytest.mark.postgres_too
def test_what_is_no_address_is_not_led_to(patient: Client, following: str) -> None:
    """Django takes a word without a slash for a view's name, and fails if there is none."""
    answer = patient.post(reverse("preferences"), {"theme": "dark", "next": following})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    typed = {"username": "owner", "password": "a long enough password", "next": following}
    answer = patient.post(reverse("login"), typed)
    assert (answer.status_code, answer["Location"]) == (302, "/")
