"""Find which executions and other resources named on a page still exist, for its links."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from console.feature import Hook, hooked
from console.models import Execution, StateMachine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import Manager

_MACHINE_PARTS = 7
_OF_CORE: dict[str, Manager[Any]] = {
    "stateMachine": StateMachine.objects,
    "execution": Execution.objects,
    "express": Execution.objects,
}


@cache
def _managers() -> dict[str, Manager[Any]]:
    """Return kind of ARN -> query of the objects that have a page."""
    return _OF_CORE | {
        kind: rows for add in hooked(Hook.ARN_OBJECTS) for kind, rows in add().items()
    }


def has_page(arn: str) -> bool:
    """Whether objects of an ARN's kind have pages."""
    return arn_kind(arn) in _managers()


def existing_arns(arns: Iterable[str | None]) -> set[str]:
    """Return the ARNs whose objects exist, with one query per kind.

    A version or an alias counts as its state machine, which has their page.
    """
    arns_of_manager: dict[Manager[Any], dict[str, list[str]]] = {}
    for arn in arns:
        manager = _managers().get(arn_kind(arn)) if arn else None
        if arn and manager is not None:
            arns_of_manager.setdefault(manager, {}).setdefault(_object_arn(arn), []).append(arn)
    existing: set[str] = set()
    for manager, written in arns_of_manager.items():
        rows = manager.filter(arn__in=written)
        for arn in rows.values_list("arn", flat=True):
            existing.update(written[arn])
    return existing


def arn_kind(arn: str) -> str:
    """Return the kind of object that an ARN names, "" for other texts."""
    parts = arn.split(":", 5)
    return parts[5].replace("/", ":").partition(":")[0] if len(parts) > 5 else ""  # noqa: PLR2004


def machine_of(arn: str) -> str:
    """Return the ARN of the state machine from the ARN of a version or alias."""
    return ":".join(arn.split(":")[:_MACHINE_PARTS])


def _object_arn(arn: str) -> str:
    return machine_of(arn) if arn_kind(arn) == "stateMachine" else arn
