"""A branch is made once, lasts for its time, and leaves nothing; its members are its parent's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model

from console import access
from console.access import Principal
from console.config import quotas
from console.db import project_settings
from console.db.branch_names import MARK
from console.errors import ConflictException, ServiceError, ValidationException
from console.features.access_keys import accounts
from console.features.branches import jobs, store
from console.features.branches.models import Branch, BranchKey
from console.features.members import store as invitations
from console.features.projects import deletion
from console.features.projects import store as projects
from console.features.projects.models import ProjectDeletion
from console.integrations import targets
from console.models import AccessKey, AuditEntry, Membership, Project, Role, StateMachine
from console.models.key_scope import ActionSet, KeyScope
from console.store.people import people
from tests.console.store.helpers import PASS, WAIT, create, crowd, start
from tests.features.branches.conftest import BY
from tests.features.projects.rows import content

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.console.transition_rates import Clock

MINUTE, DAY = 60_000, 86_400_000


def put(parent: Project, name: str = "feature/x", ttl: str = "3d") -> store.PutBranch:
    """Make or extend a branch."""
    return store.put_branch(parent, name, ttl, BY)


def roles(project: Project) -> dict[str, str]:
    """Return the members of a project with their roles."""
    rows = Membership.objects.filter(project=project)
    return dict(rows.values_list("user__username", "role"))


def test_a_branch_is_made_and_extended(payments: Project, now: Clock) -> None:
    """The second time it is the same project, and lasts longer; the audits have both."""
    create(payments, PASS)
    first = put(payments)
    project = first.branch.project
    assert first.created
    assert project.name == "payments~feature~x"
    assert re.fullmatch(r"[1-9]\d{11}", project.account_id)
    assert first.branch.expires_ms == now.now_ms + 3 * DAY
    now.now_ms += DAY
    second = put(payments, ttl="12h")
    assert not second.created
    assert second.branch.project == project
    assert second.branch.expires_ms == now.now_ms + DAY // 2
    assert StateMachine.objects.filter(project=project).count() == 1
    entries = AuditEntry.objects.filter(project=payments, action="PutBranch", target="feature/x")
    assert [entry.reason for entry in entries.order_by("pk")] == ["for 3d", "for 12h"]
    assert AuditEntry.objects.get(project=project).action == "CreateProject"


def test_the_account_stays_the_same(payments: Project) -> None:
    """Also after the branch was deleted: tests may have its ARNs."""
    account = put(payments).branch.project.account_id
    other = put(payments, "feature/y").branch.project.account_id
    store.delete_branch(payments, "feature/x", BY)
    deletion.continue_deletions()
    assert put(payments).branch.project.account_id == account != other


def test_another_account_is_taken_where_it_is_needed(payments: Project) -> None:
    """Two branches whose accounts would be one have two."""
    account = put(payments).branch.project.account_id
    store.delete_branch(payments, "feature/x", BY)
    deletion.continue_deletions()
    Project.objects.create(name="other", account_id=account)
    assert put(payments).branch.project.account_id == str(int(account) + 1)


@pytest.mark.parametrize(
    "name",
    [
        *("", "a b", "a\nb", "-a", "/a", "a/", "a//b", "a..b", "a~b", "a^", "a:b", "a?", "a*"),
        *("a[b", "a\\b", "a@{b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "a" * 201),
    ],
)
def test_what_git_takes_for_no_branch_is_refused(payments: Project, name: str) -> None:
    """By its name."""
    with pytest.raises(ValidationException, match="is not the name of a branch"):
        put(payments, name)
    assert not Branch.objects.exists()


@pytest.mark.parametrize("ttl", ["", "3", "0d", "-1d", "3w", "91d", "1.5d", "3 d", "99999d"])
def test_a_time_has_a_number_and_a_unit(payments: Project, ttl: str) -> None:
    """And is not longer than 90 days."""
    with pytest.raises(ValidationException, match="is not a time such as 30m, 12h or 3d"):
        put(payments, ttl=ttl)


def test_a_project_has_so_many_branches(payments: Project, settings: Any) -> None:
    """One that is being deleted does not count, and one more time of one that is there is fine."""
    settings.STATEYARD_BRANCHES = 1
    put(payments)
    put(payments)
    with pytest.raises(ValidationException, match="has 1 of 1 branches: delete one"):
        put(payments, "feature/y")
    store.delete_branch(payments, "feature/x", BY)
    assert put(payments, "feature/y").created


def test_a_branch_has_no_branches(payments: Project) -> None:
    """And an archived project makes none."""
    branch = put(payments).branch.project
    with pytest.raises(ValidationException, match="is a branch itself"):
        put(branch, "y")
    projects.archive_project("payments", BY)
    with pytest.raises(ServiceError, match="is archived"):
        put(payments, "y")


@pytest.mark.postgres_too
@pytest.mark.django_db(transaction=True)
def test_two_jobs_make_one_project(payments: Project) -> None:
    """At once: one creates it, the others find it; each gets the key of its own key."""
    create(payments, PASS)
    results = crowd(4, lambda _: put(Project.objects.get(pk=payments.pk)))
    assert sorted(result.created for result in results) == [False, False, False, True]
    assert Branch.objects.count() == 1
    branch = Project.objects.get(name__contains=MARK)
    assert StateMachine.objects.filter(project=branch).count() == 1
    olga = get_user_model().objects.get(username="olga")
    origin = people.new_key(olga, payments, BY)[0].key_id
    principal = Principal(olga, payments, Role.OWNER, origin)
    keys = crowd(4, lambda _: store.put_key(payments, "feature/x", principal, BY))
    assert {key.key_id for key in keys} == {BranchKey.objects.get(project=branch).key_id}


# -- its end ---------------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_after_its_time_no_row_is_left(payments: Project, now: Clock, settings: Any) -> None:
    """Every table is as if the branch had never been, but for the audit of the others."""
    del settings
    shared, own = create(payments, PASS), create(payments, WAIT, "waiting")
    before = content()
    branch = put(payments, ttl="1m").branch.project
    olga = get_user_model().objects.get(username="olga")
    origin = people.new_key(olga, payments, BY)[0].key_id
    store.put_key(payments, "feature/x", Principal(olga, payments, Role.OWNER, origin), BY)
    AccessKey.objects.filter(key_id=origin).delete()
    for machine in (shared, own):
        start(StateMachine.objects.get(project=branch, name=machine.name))
    now.now_ms += MINUTE - 1
    jobs.end_branches_and_keys()
    deletion.continue_deletions()
    assert Branch.objects.exists()
    now.now_ms += 1
    jobs.end_branches_and_keys()
    deletion.continue_deletions()
    AuditEntry.objects.filter(action__in=("PutBranch", "DeleteProject")).delete()
    AuditEntry.objects.filter(action="CreateAccessKey", target=origin).delete()
    after = content()
    changed = {table for table, rows in after.items() if rows != before[table]}
    assert {table for table in changed if not table.startswith("sqlite_")} <= {"django_session"}


def test_a_settable_grace_keeps_it_archived(payments: Project, now: Clock, settings: Any) -> None:
    """It can be read then; one more deployment takes it up again."""
    settings.STATEYARD_BRANCH_GRACE_DAYS = 1
    project = put(payments, ttl="1m").branch.project
    now.now_ms += MINUTE
    assert store.end_branches() == 1
    project.refresh_from_db()
    assert project.archived_ms == now.now_ms
    assert store.end_branches() == 0
    assert not put(payments).created
    project.refresh_from_db()
    assert project.archived_ms is None
    now.now_ms += 4 * DAY
    assert store.end_branches() == 1
    assert ProjectDeletion.objects.filter(project=project).exists()
    with pytest.raises(ConflictException, match="is being deleted"):
        put(payments)


def test_a_branch_that_is_extended_meanwhile_stays(payments: Project, now: Clock) -> None:
    """The job reads again, under the lock, what it decides on."""
    number = put(payments, ttl="1m").branch.pk
    now.now_ms += MINUTE
    put(payments)
    assert not store._end_branch(number)
    assert Project.objects.get(pk=number).archived_ms is None


@pytest.mark.postgres_too
@pytest.mark.parametrize("act", ["archive", "delete", "gone"])
def test_a_branch_follows_its_parent(payments: Project, act: str) -> None:
    """Archived with it, and deleted with it, also if the parent went while nobody looked."""
    branch = put(payments).branch.project
    projects.archive_project("payments", BY)
    if act != "archive":
        deletion.begin_deletion("payments", "payments", BY)
        assert not Membership.objects.filter(project=branch).exists()
    if act == "gone":
        assert deletion.work_on_deletion(payments.pk)
    store.end_branches()
    deletion.continue_deletions()
    assert Project.objects.filter(pk=branch.pk).exists() == (act == "archive")
    if act == "archive":
        assert Project.objects.get(pk=branch.pk).archived_ms is not None
    else:
        assert not Branch.objects.exists()
        assert Project.objects.filter(name__startswith="payments").count() == 0


def test_a_new_branch_waits_for_the_end_of_the_former(payments: Project) -> None:
    """Of its name: its rows are going."""
    put(payments)
    store.delete_branch(payments, "feature/x", BY)
    with pytest.raises(ConflictException, match="is being deleted"):
        put(payments)
    deletion.continue_deletions()
    assert put(payments).created
    with pytest.raises(ServiceError, match="has no branch 'y'"):
        store.delete_branch(payments, "y", BY)


@pytest.mark.postgres_too
def test_a_renamed_project_renames_its_branches(payments: Project) -> None:
    """Unless a name would be too long; a branch itself is not renamed."""
    branch = put(payments).branch.project
    projects.rename_project("payments", "billing", BY)
    branch.refresh_from_db()
    assert branch.name == "billing~feature~x"
    assert not put(Project.objects.get(name="billing")).created
    put(Project.objects.get(name="billing"), "b" * 40)
    with pytest.raises(ConflictException, match="is too long for the branch"):
        projects.rename_project("billing", "b" * 64, BY)
    with pytest.raises(ValidationException, match="has the name of its branch"):
        projects.rename_project("billing~feature~x", "other", BY)
    with pytest.raises(ValidationException, match="is not a name"):
        projects.create_project("billing~y", "", "olga", BY)


# -- its members and settings ----------------------------------------------------------------------


@pytest.mark.postgres_too
def test_its_members_are_those_of_the_parent(payments: Project) -> None:
    """At once, with every change of the parent."""
    branch = put(payments).branch.project
    assert roles(branch) == roles(payments)
    people.put_member(payments, "nina", "editor", BY)
    people.put_member(payments, "ed", "viewer", BY)
    assert roles(branch) == roles(payments)
    assert roles(branch)["ed"] == "viewer"
    _, token = invitations.create_invitation(payments, "inga", "operator", 24, BY)
    invitations.accept_invitation(token, "pbkdf2$x", None)
    assert roles(branch) == roles(payments)
    ed = get_user_model().objects.get(username="ed")
    AccessKey.objects.create(key_id="AKIAED", project=branch, user=ed, created_ms=1)
    people.remove_member(payments, "ed", BY)
    assert roles(branch) == roles(payments)
    assert not AccessKey.objects.filter(key_id="AKIAED").exists()


def test_service_accounts_are_members_of_branches(payments: Project) -> None:
    """With the role that they have in the parent, which alone creates some."""
    branch = put(payments).branch.project
    accounts.create_account(payments, "ci", "editor", "", BY)
    assert roles(branch) == roles(payments)
    accounts.change_account(payments, "ci", "viewer", "", BY)
    assert roles(branch) == roles(payments)
    with pytest.raises(ValidationException, match="its members are those of"):
        accounts.create_account(branch, "bot", "editor", "", BY)
    accounts.delete_account(payments, "ci", BY)
    assert roles(branch) == roles(payments)


def test_it_takes_no_members_of_its_own(payments: Project) -> None:
    """Neither by page or command nor by invitation."""
    branch = put(payments).branch.project
    acts: list[Callable[[], object]] = [
        lambda: people.put_member(branch, "nina", "owner", BY),
        lambda: people.remove_member(branch, "ed", BY),
        lambda: invitations.create_invitation(branch, "nina", "owner", 24, BY),
    ]
    for act in acts:
        with pytest.raises(ValidationException, match="its members are those of 'payments'"):
            act()
    assert roles(branch) == roles(payments)


def test_a_key_of_a_branch_ends_with_that_of_the_parent(payments: Project) -> None:
    """Deleted or disabled; a key that somebody disabled in the branch stays disabled."""
    put(payments)
    olga = get_user_model().objects.get(username="olga")
    origin = people.new_key(olga, payments, BY)[0].key_id
    principal = Principal(olga, payments, Role.OWNER, origin)
    key = store.put_key(payments, "feature/x", principal, BY)
    assert store.put_key(payments, "feature/x", principal, BY) == key
    jobs.end_branches_and_keys()
    people.switch_key(key.project, key.key_id, on=False, actor=BY)
    with pytest.raises(ServiceError, match="is disabled"):
        store.put_key(payments, "feature/x", principal, BY)
    people.switch_key(payments, origin, on=False, actor=BY)
    jobs.end_branches_and_keys()
    assert not AccessKey.objects.filter(key_id=key.key_id).exists()


def test_a_key_of_a_branch_is_limited_as_that_of_the_parent(payments: Project, now: Clock) -> None:
    """A key that only reads gets none that starts, and none that lasts longer."""
    put(payments)
    vera = get_user_model().objects.get(username="vera")
    scope = KeyScope(ActionSet.READ)
    origin, _ = people.new_key(vera, payments, BY, scope=scope, expires_ms=now.now_ms + DAY)
    principal = access.principal_of_key(origin.key_id)
    assert principal is not None
    key = store.put_key(payments, "feature/x", principal, BY)
    own = access.principal_of_key(key.key_id)
    assert own is not None
    assert (own.scope, own.expires_ms) == (scope, now.now_ms + DAY)
    now.now_ms += DAY
    jobs.end_branches_and_keys()
    assert not BranchKey.objects.exists()


def test_the_settings_of_the_parent_count(payments: Project, settings: Any) -> None:
    """Quotas, targets and functions that a file gives it; of ``default`` the general machines."""
    settings.STATEYARD_QUOTAS = {"projects": {"payments": {"activities": 3}}}
    quotas.forget()
    settings.STATEYARD_TARGETS = {
        "projects": {"payments": {"sqs": {"region": "eu-west-1"}, "machines": {"m": {"s3": {}}}}},
        "machines": {"m": {"sns": {"region": "eu-west-2"}}},
    }
    settings.STATEYARD_FUNCTIONS = {"projects": {"payments": {"add": "m:add"}}}
    name = put(payments).branch.project.name
    assert quotas.quotas_of(name).activities == 3
    key = targets.MachineKey(name, "m")
    entry = targets.find_entry("sqs", key)
    assert entry is not None
    assert entry.where == "projects: payments: sqs"
    assert targets.find_exact_entry("s3", key) is not None
    assert targets.find_exact_entry("sns", key) is None
    assert targets.find_exact_entry("sns", targets.MachineKey("default~x", "m")) is not None
    function = targets.find_function("add", "", key)
    assert function is not None
    assert function.target == "m:add"
    assert [place for place, _ in targets.sections_of(name)] == ["", "m"]
    quotas.forget()


def test_settings_of_pages_are_those_of_the_parent(payments: Project) -> None:
    """They count for its branches at once, and are changed there."""
    branch = put(payments).branch.project
    project_settings.put_setting(payments, "quota", "activities", 3, BY, revision="")
    assert project_settings.read_value(branch.name, "quota", "activities") == 3
    assert [row.value for row in project_settings.list_settings(branch, "quota")] == [3]
    row = project_settings.find_setting(branch, "quota", "activities")
    assert row is not None
    with pytest.raises(ValidationException, match="are those of 'payments'"):
        project_settings.put_setting(branch, "quota", "activities", 4, BY, revision=row.revision)


def test_every_table_of_a_branch_is_found_by_its_deletion() -> None:
    """The rows of a branch go with its own project, not with its parent."""
    from console.features.projects.rows_of_project import lookup_of_project

    assert lookup_of_project(Branch) == "project"
    assert lookup_of_project(BranchKey) == "project"
    assert Branch in apps.get_app_config("console").get_models()
