"""HTTP API (JSON) that starts executions with faults, for ``stateyard start --fault`` and pytest.

AWS's StartExecution has no faults, so such a start has its own API.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from django.http import JsonResponse

from console import arns
from console.awsapi import signed_calls
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
    document = faults.read_document(body.get("faults", "null"))
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
