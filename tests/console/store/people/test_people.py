"""A project keeps an owner when two owners act at once, and lost rights allow no action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.db.audit import Actor
from console.errors import ErrorCode, ServiceError
from console.models import AccessKey, AuditEntry, Membership, Project, Role
from console.store.people import people
from tests.console.store.helpers import crowd
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

ROUNDS = 6


@pytest.fixture
def owners(project: Project, django_user_model: Any) -> Callable[[], list[User]]:
    """Return a function that makes two people, ana and ben, the owners of the project."""

    def make() -> list[User]:
        users = []
        for name in ("ana", "ben"):
            user, _ = django_user_model.objects.get_or_create(username=name)
            Membership.objects.update_or_create(
                project=project, user=user, defaults={"role": Role.OWNER}
            )
            users.append(user)
        return users

    return make


def left(project: Project) -> int:
    """Return how many owners a project has."""
    return Membership.objects.filter(project=project, role=Role.OWNER).count()


@pytest.mark.parametrize("act", ["remove", "demote"])
def test_two_owners_who_turn_on_each_other_leave_one(
    project: Project, owners: Callable[[], list[User]], act: str
) -> None:
    """One of them wins; the other one, who is no owner any more, is refused."""
    for _ in range(ROUNDS):
        pair = owners()

        def turn(number: int, pair: list[User] = pair) -> str:
            me, other = pair[number], pair[1 - number]
            actor = Actor(me.get_username())
            if act == "remove":
                people.remove_member(project, other.get_username(), actor, me)
            else:
                people.put_member(project, other.get_username(), Role.VIEWER, actor, me)
            return "done"

        results = crowd(2, turn)
        assert left(project) == 1, results
        assert results.count("done") == 1
        assert [isinstance(result, ServiceError) for result in results].count(True) == 1


def test_an_owner_who_was_removed_adds_nobody(
    project: Project, owners: Callable[[], list[User]]
) -> None:
    """A request that was let in before the removal changes nothing after it."""
    ana, ben = owners()
    people.remove_member(project, "ben", Actor("ana"), ana)
    with raises_code(ErrorCode.AccessDeniedException):
        people.put_member(project, "eve", Role.OWNER, Actor("ben"), ben)
    with raises_code(ErrorCode.AccessDeniedException):
        people.remove_member(project, "ana", Actor("ben"), ben)
    assert not Membership.objects.filter(user__username="eve").exists()
    assert not AuditEntry.objects.filter(actor="ben").exists()


def test_no_key_is_made_beside_a_removal(
    project: Project, owners: Callable[[], list[User]]
) -> None:
    """Whichever comes first, no key is left of a person who is no member."""
    for _ in range(ROUNDS):
        ana, ben = owners()

        def turn(number: int, ana: User = ana, ben: User = ben) -> str:
            if number:
                people.new_key(ben, project, Actor("ben"))
            else:
                people.remove_member(project, "ben", Actor("ana"), ana)
            return "done"

        crowd(2, turn)
        assert not Membership.objects.filter(user=ben).exists()
        assert not AccessKey.objects.filter(user=ben).exists()


def test_removed_from_both_projects_at_once_nothing_is_left(
    project: Project, owners: Callable[[], list[User]]
) -> None:
    """Each removal sees the other's, and the last one closes the account."""
    other = Project.objects.create(name="other", account_id="999999999999")
    for _ in range(ROUNDS):
        _, ben = owners()
        Membership.objects.create(project=other, user=ben, role=Role.VIEWER)
        ben.set_password("a long enough password")
        ben.save()

        def turn(number: int) -> None:
            people.remove_member((project, other)[number], "ben", Actor("manage.py"))

        assert crowd(2, turn) == [None, None]
        ben.refresh_from_db()
        assert not ben.has_usable_password()


def test_an_owner_who_may_not_log_in_does_not_count(
    project: Project, owners: Callable[[], list[User]]
) -> None:
    """The last one who can do anything stays."""
    ana, ben = owners()
    ben.is_active = False
    ben.save()
    with pytest.raises(ServiceError, match="at least one owner"):
        people.remove_member(project, "ana", Actor("ana"), ana)
    people.remove_member(project, "ben", Actor("ana"), ana)
