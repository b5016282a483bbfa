"""Import a history from the AWS CLI's output, as rows that pages can show.

``Execution.objects`` leaves imported executions out, so the engine, the API, the lists and the
metrics never see them. They have no run, so no worker can step them.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from console.db import audit, clock
from console.db.rows import storable
from console.db.writer import write
from console.models import DebugEdit, Execution
from console.statuses import ExecutionStatus
from console.store.executions import step_rows
from console.store.machines import machines
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import Project
    from console.recordings.printed import Printed

_ENDS = event_types.EXECUTION_ENDS


def import_execution(
    project: Project, printed: Printed, actor: audit.Actor = audit.NOBODY, reason: str = ""
) -> Execution:
    """Store a parsed history as an execution; durable when this returns.

    ``reason``: for the audit.
    """
    first, last = printed.events[0], printed.events[-1]
    description, last_details = printed.description, last.details or {}
    recorded_input = (first.details or {}).get("input")
    execution = Execution(
        project=project,
        imported_ms=clock.now_ms(),
        started_by=actor.name,
        arn=storable(f"import:{secrets.token_hex(8)}:{description.get('executionArn', '')}")[:512],
        name=_name(description, "name", description.get("executionArn"), "imported"),
        state_machine_arn=_machine_arn(printed),
        status=_ENDS.get(last.type, ExecutionStatus.UNFINISHED),
        role_arn=storable(str(printed.machine.get("roleArn", "")))[:256],
        machine_updated_ms=0,
        input=storable(str(description.get("input") or recorded_input or "{}")),
        output=_text(last_details.get("output") if last.type in _ENDS else None),
        error=_text(last_details.get("error") if last.type in _ENDS else None),
        cause=_text(last_details.get("cause") if last.type in _ENDS else None),
        start_ms=first.at_ms,
        stop_ms=last.at_ms,
        faults=storable(printed.faults) or None,
        next_starts=storable(printed.next_starts) or None,
        redrive_count=sum(event.type == "ExecutionRedriven" for event in printed.events),
    )

    def store() -> None:
        execution.definition = machines.keep_definition(storable(printed.definition))
        execution.save(force_insert=True)
        step_rows.append_events(execution.pk, printed.events)
        DebugEdit.objects.bulk_create(_debug_edit(execution, edit) for edit in printed.edits)
        audit.record(project, actor, "ImportExecution", execution.arn, reason)

    write(store)
    return execution


def _debug_edit(execution: Execution, edit: Mapping[str, Any]) -> DebugEdit:
    fields = {key: storable(part) if isinstance(part, str) else part for key, part in edit.items()}
    return DebugEdit(execution=execution, **fields)


def delete_import(project: Project, number: int, actor: audit.Actor = audit.NOBODY) -> bool:
    """Delete an imported execution; return whether there was one."""

    def delete() -> bool:
        imports = Execution.imports.filter(project=project, pk=number)
        arn = imports.values_list("arn", flat=True).first()
        if arn is None:
            return False
        imports.delete()
        audit.record(project, actor, "DeleteImport", arn)
        return True

    return write(delete)


def _machine_arn(printed: Printed) -> str:
    arn = printed.description.get("stateMachineArn") or printed.machine.get("stateMachineArn")
    name = _name(printed.machine, "name", arn, "machine")
    return f"arn:aws:states:::stateMachine:{name}" if not arn else storable(str(arn))[:256]


def _name(attributes: dict[str, Any], key: str, arn: Any, fallback: str) -> str:
    """Return a name that is valid in an address."""
    name = attributes.get(key) or str(arn or "").rpartition(":")[2] or fallback
    return storable(str(name))[:80].replace("/", "~")


def _text(value: Any) -> str | None:
    return None if value is None else storable(str(value))
