"""Describe audit entries in words: action, target, origin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from django.db.models import QuerySet

from console import execution_rights
from console.access import ANY_KEY
from console.db.audit import BY_APPROVAL_LINK, LONGEST_REASON, START_LINK
from console.masking.masked_execution import masks_of
from console.models import Execution
from console.store.tasks.answers import APPROVED_WORD, REJECTED_WORD, read_answer
from console.web.core import formatting
from console.web.core.existing import existing_arns, has_page

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from console.models import AuditEntry, Project

_KINDS = {
    "stateMachine": "State machine",
    "execution": "Execution",
    "express": "Execution",
    "activity": "Activity",
    "mapRun": "Map Run",
    "rule": "Rule",
    "schedule": "Schedule",
    "schedule-group": "Schedule group",
    "log-group": "Log group",
    "alarm": "Alarm",
}
_ARN_PARTS = 6
_BULK = "bulk/"
_MASKED_AT_ONCE = 200
_EXECUTIONS: QuerySet[Execution] = QuerySet(Execution)  # imported ones, too


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An audit entry for display.

    ``kind`` and ``name``: of the object; ``owner``: whose it is, as the machine of an execution.
    ``origin``: where the act came from; ``detail``: which one; ``job``: the number of a bulk job.
    ``rule``: the name of the rule, ``schedule``: group and name of the schedule that did it.
    ``linked``: the object has a page; ``deleted``: it had one. ``by_linked``: the execution that
    did it has one.
    """

    entry: AuditEntry
    act: str
    kind: str
    name: str
    owner: str
    origin: str
    detail: str = ""
    job: int | None = None
    rule: str = ""
    schedule: tuple[str, ...] = ()
    linked: bool = False
    deleted: bool = False
    by_linked: bool = False

    @property
    def reason(self) -> str:
        """Return the reason; for the targets of a rule, their names."""
        _, reason = read_answer(self.entry.action, self.entry.reason)
        if not reason or self.entry.action not in ("events:PutTargets", "events:RemoveTargets"):
            return reason
        return f"Target{'s' if ', ' in reason else ''} {reason}"


def audit_row(entry: AuditEntry, existing: Collection[str] | None = ()) -> AuditRow:
    """Return an entry in words.

    ``existing``: the ARNs whose objects are still there, None if the row does not say so.
    """
    kind, name, owner = _object_of(entry.target)
    origin, detail, job = _origin_of(entry)
    answer, _ = read_answer(entry.action, entry.reason)
    act = _ANSWERS.get(answer) or formatting.action_words(entry.action)
    rule, schedule = _rule_of(entry.actor)
    linked = existing is not None and entry.target in existing
    return AuditRow(
        *(entry, act, kind, name, owner, origin, detail, job, rule, schedule),
        linked=linked,
        deleted=existing is not None and not linked and has_page(entry.target),
        by_linked=existing is not None and entry.execution in existing,
    )


_ANSWERS = {
    APPROVED_WORD: "Approve task",
    REJECTED_WORD: "Reject task",
}
"""What a person did -> in words: the API has the same calls for people and programs."""


def _rule_of(actor: str) -> tuple[str, tuple[str, ...]]:
    """Return the rule or schedule that acted: people's names have no blanks."""
    kind, blank, name = actor.partition(execution_rights.BY_EVENT)[0].partition(" ")
    if blank and kind == "schedule" and "/" in name:
        return "", tuple(name.split("/", 1))
    return (name if blank and kind == "rule" else ""), ()


def _object_of(target: str) -> tuple[str, str, str]:
    """Return kind, name and owner of a target."""
    parts = target.split(":", _ARN_PARTS - 1)
    if not target.startswith("arn:") or len(parts) < _ARN_PARTS:
        return "", target, ""
    kind, names = re.split("[:/]", parts[-1] + ":", maxsplit=1)
    if kind not in _KINDS:
        return "", parts[-1], ""
    names = names.removesuffix(":")
    if kind in {"execution", "express"} and ":" in names:
        machine, _, name = names.partition(":")
        return _KINDS[kind], name.partition(":")[0], machine
    return _KINDS[kind], names, ""


def _origin_of(entry: AuditEntry) -> tuple[str, str, int | None]:
    """Return an action's origin, its name, and its bulk job's number."""
    if entry.execution:
        return "Execution", "", None
    if entry.key_id == ANY_KEY:
        return "API, key not checked", "", None
    if entry.key_id:
        return "API", entry.key_id, None
    if entry.request_id.startswith(_BULK):
        return "Bulk job", "", int(entry.request_id.removeprefix(_BULK))
    return ("Console" if entry.request_id else _origin_of_actor(entry)), "", None


def _origin_of_actor(entry: AuditEntry) -> str:
    """Return the origin of an action without a member's request, from its actor.

    The names of people have no blanks, so that none of them looks like a link.
    """
    if entry.actor.startswith(START_LINK) and entry.action == "StartExecution":
        return "Start link"
    if BY_APPROVAL_LINK in entry.actor:
        return "Approval link"
    return "Command line" if entry.actor == "manage.py" else "Server"


def mask_reasons(project: Project | None, entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Return entries with masked reasons: people may quote masked values.

    The entries are never saved.
    """
    every = list(entries)
    if project is None:
        return every
    explained = [entry for entry in every if entry.reason] if project.masked else []
    for at in range(0, len(explained), _MASKED_AT_ONCE):
        chunk = explained[at : at + _MASKED_AT_ONCE]
        arns = {entry.target for entry in chunk}
        rows = _EXECUTIONS.filter(project=project, arn__in=arns).values_list("pk", "arn")
        arn_by_number = dict(rows)
        for number, mask in masks_of(project, list(arn_by_number)).items():
            for entry in chunk:
                if entry.target == arn_by_number[number]:
                    entry.reason = mask.cut_words(entry.reason, LONGEST_REASON)
    return every


@dataclass(frozen=True, slots=True)
class AuditDay:
    """The rows of one day in UTC, newest first. ``day``: such as ``2026-11-23``."""

    day: str
    rows: list[AuditRow]


def group_days(entries: Iterable[AuditEntry], *, linked: bool = True) -> list[AuditDay]:
    """Group entries by day; their order stays.

    ``linked``: rows say whether their objects exist. Not in the audit of the server: that would
    tell administrators about objects in projects of others.
    """
    every = list(entries)
    existing = None
    if linked:
        existing = existing_arns(arn for entry in every for arn in (entry.target, entry.execution))
    days = groupby(every, lambda entry: formatting.clock_text(entry.at_ms)[:10])
    return [AuditDay(day, [audit_row(entry, existing) for entry in of_day]) for day, of_day in days]
