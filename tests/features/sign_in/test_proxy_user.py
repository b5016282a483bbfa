"""People come by a proxy that names them; tests/console/server has the trust in the header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from console.db.audit import Actor
from console.features.sign_in import ways
from console.features.sign_in.proxy_user import ProxyUserMiddleware
from console.models import Role
from console.server.user_header import AMBIGUOUS, USER
from console.store.people import people

if TYPE_CHECKING:
    from console.models import Project

BY = Actor("owner")


def page(_: HttpRequest) -> HttpResponse:
    """Answer a page that needs a person."""
    return HttpResponse()


def come(name: str | None, view: Any = page) -> tuple[str, str]:
    """Return who is signed in as a view begins, and the refusal in its place."""
    request: Any = RequestFactory().get("/machines/")
    request.user, request.session = AnonymousUser(), SessionStore()
    request.scope = {} if name is None else {USER: name}
    answer = ProxyUserMiddleware(page).process_view(request, view)
    assert answer is None or answer.status_code == 403
    return request.user.get_username(), answer.content.decode() if answer else ""


@pytest.fixture
def ben(project: Project, django_user_model: Any) -> Any:
    """Return a member without a password."""
    people.put_member(project, "ben", Role.EDITOR, BY)
    return django_user_model.objects.get(username="ben")


@pytest.mark.postgres_too
def test_the_proxy_names_a_member(ben: Any) -> None:
    """For this request; the next one without the name is nobody's."""
    assert come("ben") == (ben.username, "")
    assert come(None) == ("", "")
    assert come("") == ("", "")


@pytest.mark.usefixtures("ben")
@pytest.mark.parametrize("name", ["stranger", "BEN", "<b>"])
def test_a_person_who_is_no_member_is_told_so(name: str) -> None:
    """No account is made of a name."""
    who, refusal = come(name)
    assert who == ""
    assert "No member of this server has that name" in refusal
    assert "<b>" not in refusal


def test_two_names_are_refused(ben: Any) -> None:
    """The proxy has to take away what clients send."""
    del ben
    assert "must send your name once" in come(AMBIGUOUS)[1]


def test_a_removed_person_has_no_access(ben: Any, project: Project) -> None:
    """With the next request; an administrator needs no project."""
    people.remove_member(project, "ben", BY)
    assert come("ben")[0] == ""
    people.set_administrator("ben", administers=True, actor=BY)
    assert come("ben") == ("ben", "")
    ben.refresh_from_db()
    ben.is_active = False
    ben.save()
    assert come("ben")[0] == ""


def test_a_page_for_everybody_asks_for_no_name(ben: Any) -> None:
    """Nor does it refuse an unknown one."""
    del ben
    assert come("stranger", login_not_required(page)) == ("", "")


def test_a_member_without_a_password_is_a_person(ben: Any, project: Project, settings: Any) -> None:
    """Where a proxy names people, nobody else makes keys of them."""
    assert ben in people.service_accounts(project)
    settings.STATEYARD_TRUSTED_USER_HEADER = "X-Forwarded-User"
    assert ben not in people.service_accounts(project)
    assert ways.has_provider([ben.pk]) == set()
