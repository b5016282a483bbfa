"""Copy a project into a branch, with a fixed number of SQL statements.

Copied are activities, state machines with versions, aliases and tags, log groups, saved views,
masked paths, and rules and schedules with targets, disabled. Executions, alarms, links, drafts and
revisions are not copied.

Texts that contain ARNs of the parent get ARNs of the branch, so that a branch never reaches its
parent. A definition without such ARNs is shared.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models import Value
from django.db.models.functions import Replace

from console.db import branch_names
from console.errors import ConflictException
from console.features.versions.definition_diff import DEPLOYED
from console.models import (
    Activity,
    Alias,
    Definition,
    EventRule,
    EventTarget,
    LogGroup,
    LogRoute,
    Membership,
    Project,
    SavedView,
    ScheduleGroup,
    StateMachine,
    Tag,
    Version,
)
from console.statuses import MachineStatus, RuleState
from console.store.machines import log_groups
from console.store.machines.machines import sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from django.db.models import QuerySet

    Rename = Callable[[str], str]

_AT_ONCE = 500
_TEXTS = ("arn", "logging", "query", "address", "settings", "pattern")
"""Columns whose text may contain ARNs of the project."""


def copy_project(parent: Project, branch: Project, moment_ms: int) -> int:
    """Copy a project's contents; return the new state machines (inside a transaction)."""
    rename = partial(
        branch_names.moved_arns, account=parent.account_id, new_account=branch.account_id
    )
    copy = partial(_copy_rows, branch=branch, rename=rename)
    copy_members(parent, branch)
    active = StateMachine.objects.filter(project=parent, status=MachineStatus.ACTIVE)
    versions = Version.objects.filter(state_machine__in=active)
    definition_texts = [*active.values_list("definition", flat=True)]
    definition_texts += versions.values_list("definition", flat=True)
    texts = _copy_definitions(definition_texts, rename)
    dates: dict[str, Any] = {"created_ms": moment_ms}
    machines = copy(active, definitions=texts, updated_ms=moment_ms, **dates)
    copy(versions, parents=machines, definitions=texts)
    copy(Alias.objects.filter(state_machine__in=active), parents=machines)
    activities = copy(Activity.objects.filter(project=parent), **dates)
    copy(LogGroup.objects.filter(project=parent, deleted_ms=None), **dates)
    _route_logs(machines.values(), moment_ms)
    copy(SavedView.objects.filter(project=parent))
    rules = _copy_rules(parent, branch, copy, dates)
    copies = [row.arn for rows in (machines, activities, rules) for row in rows.values()]
    back = partial(
        branch_names.moved_arns, account=branch.account_id, new_account=parent.account_id
    )
    _copy_tags({back(arn): arn for arn in copies}, texts)
    return len(machines)


def _copy_rules(
    parent: Project, branch: Project, copy: Callable[..., Any], dates: Mapping[str, Any]
) -> dict[int, EventRule]:
    """Insert disabled copies of rules and schedules; patterns name the branch's account."""
    copy(ScheduleGroup.objects.filter(project=parent), **dates)
    off = {"state": RuleState.DISABLED, "next_ms": None, "due_ms": None, "client_token": ""}
    pattern = Replace("pattern", Value(f'"{parent.account_id}"'), Value(f'"{branch.account_id}"'))
    rules: dict[int, EventRule] = copy(EventRule.objects.filter(project=parent), **off, **dates)
    EventRule.objects.filter(project=branch).exclude(pattern="").update(pattern=pattern)
    targets = EventTarget.objects.filter(rule__project=parent)
    copy(targets, parents=rules, timeouts=0, paused_until_ms=None)
    return rules


def copy_members(parent: Project, branch: Project) -> None:
    """Copy the parent's members to a branch."""
    members = Membership.objects.filter(project=parent).order_by("pk")
    rows = [
        Membership(project=branch, user_id=row.user_id, role=row.role, columns=row.columns)
        for row in members
    ]
    Membership.objects.bulk_create(rows)


def _copy_rows(
    rows: QuerySet[Any],
    *,
    branch: Project,
    rename: Rename,
    parents: Mapping[int, Any] | None = None,
    definitions: Mapping[str, str] | None = None,
    **changes: Any,
) -> dict[int, Any]:
    """Insert copies of rows; return original id -> copy.

    ``parents``: copies of the rows that they refer to. ``definitions``: original key -> copy's key.
    """
    copies: dict[int, Any] = {}
    columns = {field.name for field in rows.model._meta.concrete_fields}  # noqa: SLF001 - documented
    for row in rows.order_by("pk"):
        number = row.pk
        for column in columns.intersection(_TEXTS):
            if text := getattr(row, column):
                setattr(row, column, rename(text))
        for owner in columns.intersection(("state_machine", "rule")):
            if parents is not None:
                setattr(row, owner, parents[getattr(row, f"{owner}_id")])
        if "project" in columns:
            row.project = branch
        if definitions is not None:
            row.definition_id = definitions.get(row.definition_id, row.definition_id)
        for column, value in changes.items():
            setattr(row, column, value)
        row.pk = None
        row._state.adding = True  # noqa: SLF001 - documented: how to copy a row
        copies[number] = row
    rows.model.objects.bulk_create(copies.values())
    return copies


def _copy_definitions(keys: Iterable[str], rename: Rename) -> dict[str, str]:
    """Insert the definitions whose text differs in the branch; return old -> new key."""
    keys = sorted(set(keys))
    copies: dict[str, Definition] = {}
    for start in range(0, len(keys), _AT_ONCE):
        for row in Definition.objects.filter(pk__in=keys[start : start + _AT_ONCE]):
            text = rename(row.text)
            if text != row.text:
                copies[row.pk] = Definition(sha256=sha256_of(text), text=text)
    texts = {row.pk: row for row in copies.values()}
    Definition.objects.bulk_create(texts.values(), ignore_conflicts=True)
    # the deletion of another branch may be removing definitions: lock the existing ones
    locked = Definition.objects.select_for_update(no_key=True).filter(pk__in=list(texts))
    if len(locked.values_list("pk")) < len(texts):
        raise ConflictException("The branch was just deleted: try again.")
    return {key: row.pk for key, row in copies.items()}


def _route_logs(machines: Iterable[StateMachine], moment_ms: int) -> None:
    routes = [log_groups.route_of(row, moment_ms) for row in machines if row.logging]
    LogRoute.objects.bulk_create(route for route in routes if route.group)


def _copy_tags(arns: Mapping[str, str], definitions: Mapping[str, str]) -> None:
    """Insert the tags of copied resources. ``arns``: original -> copy.

    The tag with the hash of the deployed text is changed with the text.
    """
    originals = sorted(arns)
    tags = []
    for start in range(0, len(originals), _AT_ONCE):
        for tag in Tag.objects.filter(arn__in=originals[start : start + _AT_ONCE]).order_by("pk"):
            is_hash = tag.key == DEPLOYED
            value = definitions.get(tag.value, tag.value) if is_hash else tag.value
            tags.append(Tag(arn=arns[tag.arn], key=tag.key, value=value))
    Tag.objects.bulk_create(tags)
