"""Check I17: no row refers to an execution, project or definition that is not there.

PostgreSQL checks it for tables that are written rarely only (``db_constraint``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Exists, ForeignKey, OuterRef

from console.features.doctor.violation import Violation
from console.models import (
    AuditEntry,
    Execution,
    HistoryEvent,
    InboxMessage,
    RunRow,
    RunValue,
    TaskRow,
    Timer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import Model

_MODELS = (Execution, RunRow, RunValue, HistoryEvent, InboxMessage, Timer, TaskRow, AuditEntry)
_AT_MOST = 100  # of a kind: who has more has one reason for all


def orphans() -> Iterator[Violation]:
    """Yield dangling references, one statement per kind, so each as of one instant."""
    for model in _MODELS:
        for field in model._meta.concrete_fields:  # noqa: SLF001 - Django's documented API
            if isinstance(field, ForeignKey) and not field.db_constraint:  # type: ignore[attr-defined]  # the stubs lack it
                yield from _missing(model, field)


def _missing(model: type[Model], field: ForeignKey[Any, Any]) -> Iterator[Violation]:
    referred = field.related_model._base_manager.filter(pk=OuterRef(field.attname))  # noqa: SLF001
    rows = model._base_manager.filter(~Exists(referred), **{f"{field.name}__isnull": False})  # noqa: SLF001
    values = rows.order_by().values_list(field.attname, flat=True).distinct()
    for value in values[:_AT_MOST]:
        what = f"a row of {model._meta.db_table} is of {field.name} {value}, which is not there"  # noqa: SLF001
        yield Violation("I17", "", what)
