"""Find all tables with rows of a project, and delete these rows in batches.

Tables are found by their foreign keys, so a new table of any feature is included automatically.
Rows of executions are excluded, since they are deleted with their execution; tags and definitions
have no foreign key.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models

from console.features.projects.models import ProjectDeletion
from console.models import (
    Definition,
    Execution,
    MachineRevision,
    MapRun,
    Project,
    StateMachine,
    Tag,
    Version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models.options import Options

AT_ONCE = 1_000
"""Rows that are deleted in one transaction."""
_ACCOUNT_AT = 4  # arn:aws:states:region:ACCOUNT:...


@cache
def tables_of_projects() -> tuple[tuple[type[models.Model], str], ...]:
    """Return models with the lookup of their project, each before the models it refers to."""
    lookups: dict[type[models.Model], str] = {}
    for model in apps.get_app_config("console").get_models():
        lookup = lookup_of_project(model)
        if lookup and model is not ProjectDeletion:
            _add_after_users(model, lookups)
    return tuple(lookups.items())


def _add_after_users(model: type[models.Model], lookups: dict[type[models.Model], str]) -> None:
    """Add a model after the models that refer to it."""
    if model in lookups:
        return
    for relation in _options(model).related_objects:
        user = relation.related_model
        if user is not model and lookup_of_project(user) and user is not ProjectDeletion:
            _add_after_users(user, lookups)
    lookups[model] = lookup_of_project(model)


def lookup_of_project(model: type[models.Model]) -> str:
    """Return the lookup from a model to its project, "" without one or for rows of executions."""
    if model in (Execution, MapRun, Project):
        return ""
    fields = _options(model).concrete_fields
    keys = [field for field in fields if isinstance(field, models.ForeignKey)]
    targets: dict[str, Any] = {field.name: field.related_model for field in keys}
    if Execution in targets.values() or MapRun in targets.values():
        return ""
    for name, target in targets.items():
        if target is Project:
            return name
    for name, target in targets.items():
        further = lookup_of_project(target)
        if further:
            return f"{name}__{further}"
    return ""


def delete_some(project: int) -> bool:
    """Delete up to ``AT_ONCE`` rows of a project in one table; return whether there were any.

    (Inside the caller's transaction.)
    """
    for model, lookup in tables_of_projects():
        condition = _keys_of_some(model, lookup, project)
        if condition:
            rows = _rows_of(model).filter(**condition)
            rows._raw_delete(rows.db)  # noqa: SLF001 - no row is loaded for signals nobody gets
            return True
    return False


def _keys_of_some(model: type[models.Model], lookup: str, project: int) -> dict[str, Any]:
    """Return a condition for some rows of a project, {} without any."""
    rows = _rows_of(model).filter(**{lookup: project})
    key = _options(model).pk
    if not isinstance(key, models.CompositePrimaryKey):
        numbers = list(rows.values_list("pk", flat=True)[:AT_ONCE])
        return {"pk__in": numbers} if numbers else {}
    names = list(key.field_names)
    owner, place = names[0], names[1]
    keys = list(rows.order_by(owner, place).values_list(owner, place)[:AT_ONCE])
    if not keys:
        return {}
    first = keys[0][0]
    last = max(number for number_of, number in keys if number_of == first)
    return {owner: first, f"{place}__lte": last}


def _rows_of(model: type[models.Model]) -> models.QuerySet[Any]:
    """Return all rows of a model: its default manager may hide some."""
    return models.QuerySet(model)


def _options(model: type[models.Model]) -> Options[Any]:
    return model._meta  # noqa: SLF001 - documented in spite of its name


def delete_tags(account_id: str) -> None:
    """Delete all tags in an account (inside the caller's transaction)."""
    tags = Tag.objects.filter(arn__contains=f":{account_id}:").values_list("pk", "arn")
    numbers = [pk for pk, arn in tags if arn.split(":")[_ACCOUNT_AT] == account_id]
    for start in range(0, len(numbers), AT_ONCE):
        Tag.objects.filter(pk__in=numbers[start : start + AT_ONCE]).delete()


def unused_definitions() -> Iterator[list[str]]:
    """Yield the keys of unused definitions in batches."""
    used_keys: set[str] = set()
    for manager in (
        *(model.objects for model in (StateMachine, Version, MachineRevision, MapRun)),
        Execution.stored,
    ):
        used_keys.update(manager.order_by().values_list("definition_id", flat=True).distinct())
    keys = Definition.objects.values_list("pk", flat=True)
    unused = sorted(set(keys) - used_keys)
    for start in range(0, len(unused), AT_ONCE):
        yield unused[start : start + AT_ONCE]
