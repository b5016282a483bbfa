"""Answer the HTTP API of next starts: JSON, for ``stateyard next_starts``."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.http import JsonResponse

from console.awsapi import signed_calls
from console.db import clock
from console.errors import ValidationException
from console.features.next_starts import store
from console.models.key_scope import KeyedResource
from console.store.executions import breakpoints, faults, next_starts
from console.store.machines import machines
from console.store.machines.versions import Target
from console.web.core.numbers import whole_number

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.access import Principal
    from console.db.audit import Actor
    from console.models import StateMachine

_COLONS = 6
_MEMBERS = ("starts", "hours", "breakpoints", "faults")


@signed_calls.signed_view("GET", "HEAD", "POST")
def next_starts_view(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/next-starts``: list, or set them for a machine.

    ``?machine=ARN``: of this one only.
    """
    if request.method == "POST":
        return _set_next_starts(request, principal, actor)
    if "machine" in request.GET:
        arn = request.GET["machine"]
        machine = _authorized_machine(request, principal, actor, ("ListNextStarts",), arn)
        current = next_starts.next_starts_of(machine, clock.now_ms())
        pairs = [] if current is None else [(machine, current)]
    else:
        signed_calls.authorize(principal, actor, "ListNextStarts", request.path)
        pairs = store.list_next_starts(principal.project)
    return JsonResponse({"nextStarts": [_members(*pair) for pair in pairs]})


def _set_next_starts(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    body = signed_calls.read_body(request, "machine", _MEMBERS)
    actions = [store.SET]
    actions += [breakpoints.ACTION] if "breakpoints" in body else []
    actions += [faults.ACTION] if "faults" in body else []
    machine = _authorized_machine(request, principal, actor, actions, body["machine"])
    document = _document(body.get("faults"))
    places = breakpoints.breakpoints_of_start(machine, None, body.get("breakpoints", "[]"))
    plan = faults.read_plan(Target(machine), document, actor.name) if document else None
    current = store.set_next_starts(
        machine,
        starts=_whole(body, "starts", 1),
        hours=_whole(body, "hours", store.DEFAULT_HOURS),
        places=places,
        faults=plan,
        seeded=isinstance(document, dict) and "seed" in document,
        actor=actor,
    )
    return JsonResponse(_members(machine, current), status=HTTPStatus.CREATED)


@signed_calls.signed_view("POST")
def remove(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/next-starts/remove``: remove breakpoints and faults for next starts."""
    body = signed_calls.read_body(request, "machine")
    machine = _authorized_machine(request, principal, actor, (store.REMOVE,), body["machine"])
    return JsonResponse(_members(machine, store.remove_next_starts(machine, actor, None)))


def _authorized_machine(
    request: HttpRequest, principal: Principal, actor: Actor, actions: Any, arn: str
) -> StateMachine:
    """Return the state machine of a call; raise an error without the right to all actions."""
    name = arn.split(":")[_COLONS] if arn.count(":") >= _COLONS else ""
    resource = KeyedResource(arn[:256], name)
    for action in actions:
        signed_calls.authorize(principal, actor, action, request.path, resource)
    return machines.get_machine(principal.project, arn)


def _document(text: str | None) -> Any:
    if text is None:
        return None
    document = faults.read_document(text)
    if not document:
        raise ValidationException("faults: got none, expected at least one")
    return document


def _whole(body: signed_calls.Body, member: str, default: int) -> int:
    text = body.get(member, str(default))
    number = whole_number(text)
    if number is None:
        raise ValidationException(f"{member}: got {text[:40]!r}, expected a whole number")
    return number


def _members(machine: StateMachine, current: next_starts.NextStarts) -> dict[str, Any]:
    """Return what the next starts of a machine get. Times: seconds since 1970."""
    return {
        "stateMachineArn": machine.arn,
        "starts": current.starts,
        "taken": current.taken,
        "by": current.set_by,
        "since": current.set_ms / 1000,
        "until": current.until_ms / 1000,
        "breakpoints": current.breakpoint_words,
        "faults": current.fault_words,
        "problem": next_starts.problem_of(current, machine.project.name, machine.definition_id),
    }
