"""Show what people did to an execution, from the audit trail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.access import ANY_KEY
from console.db.audit import LONGEST_REASON
from console.db.prepared import read_models
from console.masking import masked_execution
from console.models import AuditEntry
from console.store.tasks.answers import read_answer

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from console.masking.mask import Mask
    from console.models import Execution

MOST = 20
"""How many acts the page shows; the audit has all."""
_NOT_STARTS = "NOT (action = 'StartExecution')"  # written as in the index, which holds no starts
_WORDS = {
    "StopExecution": "Stopped",
    "RedriveExecution": "Redriven",
    "SendTaskSuccess": "Task completed by hand",
    "SendTaskFailure": "Task failed by hand",
    "SendTaskHeartbeat": "Task kept alive by hand",
    "RevealTaskToken": "Task token revealed",
    "RevealPayloads": "Hidden values revealed",
    "SharePicture": "Graph shared by a link",
    "PutNote": "Note changed",
    "UpdateMapRun": "Map Run changed",
    "TagResource": "Tags changed",
    "UntagResource": "Tags removed",
}


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """Something that somebody did.

    ``key``: with which access key, in words, "" on a page; ``execution``: by a Task of which, that
    they have started.
    """

    at_ms: int
    words: str
    actor: str
    reason: str = ""
    key: str = ""
    execution: str = ""


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """The newest acts, newest first; ``more``: there are others before them."""

    acts: tuple[AuditedAction, ...]
    more: bool

    @property
    def stop(self) -> AuditedAction | None:
        """Return the newest stop of the execution, None if nobody has stopped it."""
        return next((act for act in self.acts if act.words == _WORDS["StopExecution"]), None)


def audit_trail_of(execution: Execution) -> AuditTrail:
    """Return what was done with an execution, its start last, by one query."""
    entries = read_models("acts", _read_acts, execution.arn)
    mask = masked_execution.masked_execution(execution).mask
    acts = [_action(row, mask) for row in entries[:MOST] if row.action != "ImportExecution"]
    if len(entries) <= MOST:
        begun = "Imported" if execution.imported_ms else "Started"
        at_ms = execution.imported_ms or execution.start_ms
        acts.append(AuditedAction(at_ms, begun, execution.started_by))
    return AuditTrail(tuple(acts), len(entries) > MOST)


def _read_acts(target: str) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(target=target)  # which names the project's account
    rows = rows.extra(where=[_NOT_STARTS])  # noqa: S610 - a constant, literally as in the index
    return rows.order_by("-at_ms", "-pk")[: MOST + 1]


def _action(row: AuditEntry, mask: Mask) -> AuditedAction:
    answer, reason = read_answer(row.action, row.reason)
    words = f"Task {answer}" if answer else _WORDS.get(row.action, row.action)
    key = _key_words(row.key_id)
    return AuditedAction(
        *(
            row.at_ms,
            words,
            row.actor,
            mask.cut_words(reason, LONGEST_REASON),
            key,
            row.execution or "",
        )
    )


def _key_words(key_id: str) -> str:
    """Return in words which access key a call came with, "" where there was no call."""
    if key_id == ANY_KEY:
        return "key not checked"
    return key_id and f"key {key_id}"
