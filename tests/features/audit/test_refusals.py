"""Refused sign-ins and calls are in the audit, in bounded number and without passwords."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client

from console.awsapi.refused_calls import record_refusal
from console.db import refusals
from console.errors import ErrorCode, ServiceError
from console.models import AccessKey, AuditEntry
from tests.loops import looped

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project


def rows(action: str) -> list[tuple[str, str, str]]:
    """Return actor, target and reason of the rows of an action."""
    entries = AuditEntry.objects.filter(action=action).order_by("pk")
    return list(entries.values_list("actor", "target", "reason"))


async def run_on_thread(write_row: Callable[[], None]) -> None:
    """Run a function on a thread that closes its connection, as the server's threads do."""

    def run() -> None:
        try:
            write_row()
        finally:
            connection.close()

    await asyncio.to_thread(run)


def test_a_wrong_password_is_recorded_with_the_name_of_an_account_only(
    project: Project, django_user_model: Any
) -> None:
    """People type passwords into the field of the name."""
    del project
    django_user_model.objects.create_user("ana", password="three brown foxes")
    for name in ("ana", "four-white-Hens7"):
        form = {"username": name, "password": "five-grey-Owls3"}
        assert Client().post("/login/", form).status_code == 422
    assert rows(refusals.REFUSED_SIGN_IN) == [
        ("ana", "ana", "wrong password, from 127.0.0.1"),
        ("", "unknown name", "wrong password, from 127.0.0.1"),
    ]
    everything = str(list(AuditEntry.objects.values()))
    assert "Owls3" not in everything
    assert "Hens7" not in everything


def test_a_used_login_link_is_recorded_when_its_button_is_clicked(project: Project) -> None:
    """Not when a scanner of mail opens it."""
    del project
    assert Client().get("/login/nosuchtoken/").status_code == 410
    assert rows(refusals.REFUSED_SIGN_IN) == []
    assert Client().post("/login/nosuchtoken/").status_code == 410
    assert len(rows(refusals.REFUSED_SIGN_IN)) == 1


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        (ErrorCode.AccessDeniedException, "ana", "no right, from 192.0.2.9"),
        (ErrorCode.InvalidSignatureException, "", "wrong signature, from 192.0.2.9"),
    ],
)
def test_a_refused_call_is_in_the_audit_of_the_keys_project(
    project: Project, django_user_model: Any, code: ErrorCode, name: str, reason: str
) -> None:
    """A person is named only if the signature was theirs."""
    user = django_user_model.objects.create_user("ana")
    key_id = f"AKIA{project.pk}{len(code)}"  # who has a key is remembered for a moment
    AccessKey.objects.create(key_id=key_id, project=project, user=user, created_ms=1)
    project.membership_set.create(user=user, role="viewer")
    error = ServiceError(code, "no right")
    scope = {"client": ("192.0.2.9", 1)}
    looped(lambda: record_refusal(run_on_thread, scope, key_id, "StopExecution", error))
    entry = AuditEntry.objects.get(action=refusals.REFUSED)
    assert (entry.project_id, entry.key_id) == (project.pk, key_id)
    assert (entry.actor, entry.target, entry.reason) == (name, "StopExecution", reason)


def test_other_errors_of_calls_are_no_refusals(project: Project) -> None:
    """Such as a name that is not there."""
    del project
    error = ServiceError(ErrorCode.ExecutionDoesNotExist, "none")
    looped(lambda: record_refusal(run_on_thread, {}, "", "StopExecution", error))
    assert not AuditEntry.objects.exists()


def test_a_flood_of_one_source_is_counted(project: Project) -> None:
    """The first ones have rows, the others one row together."""
    del project
    for _ in range(refusals.MOST_OF_SOURCE + 7):
        refusals.record_refused_sign_in("", "192.0.2.1", "", "wrong password")
    refusals.record_refused_sign_in("", "192.0.2.2", "", "wrong password")
    assert len(rows(refusals.REFUSED_SIGN_IN)) == refusals.MOST_OF_SOURCE + 1
    refusals.LIMIT.write_counts()
    assert rows(refusals.MORE_REFUSED) == [("stateyard", "192.0.2.1", "7 more within 60 seconds")]
    refusals.LIMIT.write_counts()
    assert len(rows(refusals.MORE_REFUSED)) == 1


def test_a_flood_of_many_sources_is_bounded(project: Project) -> None:
    """In rows and in memory."""
    del project
    limit = refusals.RefusalLimit()
    admitted = sum(limit.admit(f"192.0.2.{number}", None) for number in range(10 * refusals.MOST))
    assert admitted == refusals.MOST
    assert len(limit._windows) == refusals.MOST + 1
    limit.write_counts()
    expected = ("stateyard", "other sources", f"{9 * refusals.MOST} more within 60 seconds")
    assert rows(refusals.MORE_REFUSED) == [expected]
