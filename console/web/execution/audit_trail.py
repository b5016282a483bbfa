"""List people's actions on an execution, from the audit trail."""

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
"""The maximum number of actions on the page; the audit has all of them."""
_NOT_STARTS = "NOT (action = 'StartExecution')"
"""Must equal the condition of the partial index, which leaves out starts."""
_WORDS = {
    "StopExecution": "Stopped",
    "PauseExecution": "Paused",
    "ResumeExecution": "Resumed",
    "DebugExecution": "Breakpoints",
    "RedriveExecution": "Redriven",
    "SendTaskSuccess": "Task completed manually",
    "SendTaskFailure": "Task failed manually",
    "SendTaskHeartbeat": "Heartbeat sent manually",
    "RevealTaskToken": "Task token revealed",
    "RevealPayloads": "Masked values revealed",
    "SharePicture": "Graph shared by link",
    "PutNote": "Note changed",
    "UpdateMapRun": "Map Run changed",
    "TagResource": "Tags changed",
    "UntagResource": "Tags removed",
}


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """An action by a person.

    ``key``: the access key of an API call in words, "" for an action on a page. ``execution``: the
    ARN of the execution whose Task made the call (``actor`` started that execution), else "".
    """

    at_ms: int
    words: str
    actor: str
    reason: str = ""
    key: str = ""
    execution: str = ""


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """The latest actions, newest first; ``more``: there are older actions."""

    acts: tuple[AuditedAction, ...]
    more: bool

    @property
    def stop(self) -> AuditedAction | None:
        """Return the latest stop among these actions, None without one."""
        return next((act for act in self.acts if act.words == _WORDS["StopExecution"]), None)


def audit_trail_of(execution: Execution) -> AuditTrail:
    """Return the latest actions on an execution, and its start if there is room.

    Runs one query, and more if the project has masked paths and the mask was not prepared.
    """
    entries = read_models("acts", _read_acts, execution.arn)
    mask = masked_execution.masked_execution(execution).mask
    acts = [_action(row, mask) for row in entries[:MOST] if row.action != "ImportExecution"]
    if len(entries) <= MOST:
        begun = "Imported" if execution.imported_ms else "Started"
        at_ms = execution.imported_ms or execution.start_ms
        acts.append(AuditedAction(at_ms, begun, execution.started_by))
    return AuditTrail(tuple(acts), len(entries) > MOST)


def _read_acts(target: str) -> QuerySet[AuditEntry]:
    # an ARN contains the account id, so it belongs to one project
    rows = AuditEntry.objects.filter(target=target)
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
    """Return the access key of an API call in words, "" for an action on a page."""
    if key_id == ANY_KEY:
        return "key not checked"
    return key_id and f"key {key_id}"
