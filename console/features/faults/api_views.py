"""Answer the HTTP API of faults: JSON, for ``stateyard start --fault`` and the pytest fixture.

AWS's StartExecution takes no faults, so an execution with faults is started by a call of its own.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from django.http import JsonResponse

from console import arns
from console.awsapi import signed_calls
from console.errors import ValidationException
from console.models.key_scope import KeyedResource
from console.store.executions import faults
from console.store.machines import versions

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.access import Principal
    from console.db.audit import Actor

_COLONS = 6


@signed_calls.signed_view("POST")
def start_faulty(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/faults``: start an execution with the faults of a document."""
    body = signed_calls.read_body(request, "stateMachineArn", ("faults", "input", "name"))
    arn = body["stateMachineArn"]
    machine = arn.split(":")[_COLONS] if arn.count(":") >= _COLONS else ""
    resource = KeyedResource(arn[:256], machine)
    for action in (faults.ACTION, "StartExecution"):
        signed_calls.authorize(principal, actor, action, request.path, resource)
    try:
        document = json.loads(body.get("faults", "null"))
    except ValueError as error:
        raise ValidationException(f"faults must be a JSON text: {error}") from None
    arns.check_unlabelled(arn)
    target = versions.resolve_target(principal.project, arn)
    execution = faults.start_faulty(
        target, document, actor, input=body.get("input", "{}"), name=body.get("name")
    )
    seed, _ = faults.planned_faults(execution)
    answer = {
        "executionArn": execution.arn,
        "startDate": execution.start_ms / 1000,
        "seed": seed,
    }
    return JsonResponse(answer, status=HTTPStatus.CREATED)
