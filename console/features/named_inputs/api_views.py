"""HTTP API of named inputs (JSON), for ``stateyard start --input-name`` and tests.

A call is signed with an access key of the project. A caller who may start executions may read
masked values in named inputs; the audit records it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from django.http import JsonResponse

from console.awsapi import signed_calls
from console.db import audit
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.features.named_inputs import store
from console.models import StateMachine

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.access import Principal
    from console.db.audit import Actor


@signed_calls.signed_view("GET", "POST")
def inputs(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/inputs``: list a state machine's inputs, return one, or save one."""
    if request.method == "POST":
        signed_calls.authorize(principal, actor, "PutNamedInput", request.path)
        body = signed_calls.read_body(request, "machine", ("name", "input"))
        machine = _machine_of(principal, body["machine"])
        row = store.put_input(machine, body.get("name", ""), body.get("input", ""), actor)
        return JsonResponse({"name": row.name}, status=HTTPStatus.CREATED)
    name = request.GET.get("name", "")
    action = "GetNamedInput" if name else "ListNamedInputs"
    signed_calls.authorize(principal, actor, action, request.path)
    machine = _machine_of(principal, request.GET.get("machine", ""))
    if not name:
        return JsonResponse({"names": store.list_names(machine)})
    text = store.get_input(machine, name).text
    if store.shown_text(machine.project, text) != text:
        signed_calls.authorize(principal, actor, "RevealPayloads", request.path)
        _note_read(machine, name, actor)
    return JsonResponse({"name": name, "input": text})


def _machine_of(principal: Principal, name: str) -> StateMachine:
    """Return a state machine of the key's project, by name or ARN.

    Raises StateMachineDoesNotExist, and ValidationException for a name in several regions.
    """
    rows = StateMachine.objects.select_related("project").filter(project=principal.project)
    key = {"arn": name} if name.startswith("arn:") else {"name": name}
    machines = list(rows.filter(**key)[:2])
    if not machines:
        message = f"State Machine Does Not Exist: '{name[:256]}'"
        raise ServiceError(ErrorCode.StateMachineDoesNotExist, message)
    if len(machines) > 1:
        raise ValidationException(f"machine: {name!r} is in several regions, so give its ARN")
    return machines[0]


def _note_read(machine: StateMachine, name: str, actor: Actor) -> None:
    """Record in the audit that the caller reads an input with masked values."""
    reason = f"input “{name}” read by GetNamedInput"
    write(lambda: audit.record(machine.project, actor, "RevealPayloads", machine.arn, reason))
