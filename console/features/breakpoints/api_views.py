"""HTTP API (JSON) that starts executions with breakpoints, signed with a project's access key.

AWS's StartExecution has no breakpoints, so such a start has its own API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import JsonResponse

from console.awsapi import signed_calls
from console.models.key_scope import KeyedResource
from console.store.executions import breakpoints
from console.store.executions.start import start_execution
from console.store.machines import versions

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.access import Principal
    from console.db.audit import Actor

_MEMBERS = ("name", "input", "breakpoints")
_COLONS = 6


@signed_calls.signed_view("POST")
def start(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/executions/start``: start an execution with breakpoints.

    ``machine``: the ARN of a state machine, a version or an alias. ``breakpoints``: a JSON array of
    objects with ``state`` and optional ``when``, ``condition`` and ``hits``.
    """
    body = signed_calls.read_body(request, "machine", _MEMBERS)
    arn = body["machine"]
    name = arn.split(":")[_COLONS] if arn.count(":") >= _COLONS else ""
    resource = KeyedResource(arn[:256], name)
    for action in ("StartExecution", breakpoints.ACTION):
        signed_calls.authorize(principal, actor, action, request.path, resource)
    target = versions.resolve_target(principal.project, arn)
    text = body.get("breakpoints", "[]")
    started = start_execution(
        target.machine,
        version=target.version,
        alias_arn=target.alias.arn if target.alias else "",
        name=body.get("name") or None,
        input=body.get("input", "{}"),
        breakpoints=breakpoints.breakpoints_of_start(target.machine, target.version, text),
        actor=actor,
    )
    return JsonResponse({"executionArn": started.arn, "startDate": started.start_ms / 1000})
