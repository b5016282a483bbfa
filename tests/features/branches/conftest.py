"""The people of these tests, and their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.db.audit import Actor
from console.features.projects import store as projects
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

BY = Actor("olga")


@pytest.fixture
def payments(project: Project, django_user_model: Any) -> Project:
    """Return a project with an owner, an editor, an operator and a viewer."""
    del project
    django_user_model.objects.create_user("olga")
    payments = projects.create_project("payments", "222222222222", "olga", BY)
    for name, role in (("ed", "editor"), ("otto", "operator"), ("vera", "viewer")):
        people.put_member(payments, name, role, BY)
    return payments


@pytest.fixture
def key_of(payments: Project) -> Callable[[str], str]:
    """Return a function that makes a key of a member of ``payments``."""

    def make(name: str) -> str:
        members = {row.user.get_username(): row.user for row in payments.membership_set.all()}
        return people.new_key(members[name], payments, BY)[0].key_id

    return make
