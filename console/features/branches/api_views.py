"""HTTP API of branches (JSON), for ``stateyard deploy --branch`` and ``stateyard branch``.

A call is signed with an access key. The parent is the key's project, so a caller cannot name a
project of others.
"""

from __future__ import annotations

from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import JsonResponse

from console import access
from console.awsapi import asgi, signed_calls, sigv4
from console.db import audit, clock
from console.errors import ValidationException
from console.features.branches import deployments, store

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

    from console.access import Principal
    from console.awsapi.signed_calls import Body
    from console.models import Project

    Act = Callable[[Principal, audit.Actor, Body], JsonResponse]


def _authorize(request: HttpRequest, principal: Principal, actor: audit.Actor, action: str) -> None:
    """Raise AccessDeniedException unless the caller's role and key allow an action."""
    if settings.STATEYARD_ACCEPT_ANY_KEY:
        raise ValidationException(
            "This server accepts any access key, so it cannot tell a branch from its project."
        )
    signed_calls.authorize(principal, actor, action, request.path)


def _api_view(action: str, required: str, *optional: str) -> Callable[[Act], signed_calls.View]:
    """Make a view from a function. ``action``: the required right."""

    def make(act: Act) -> signed_calls.View:
        @signed_calls.signed_view("POST")
        @wraps(act)
        def view(request: HttpRequest, principal: Principal, actor: audit.Actor) -> JsonResponse:
            _authorize(request, principal, actor, action)
            return act(principal, actor, signed_calls.read_body(request, required, optional))

        return view

    return make


@signed_calls.signed_view("GET", "POST")
def branches(request: HttpRequest, principal: Principal, actor: audit.Actor) -> JsonResponse:
    """Answer ``/api/branches``: list the branches of the caller's project; create or extend one."""
    if request.method == "GET":
        _authorize(request, principal, actor, "ListBranches")
        return JsonResponse({"branches": _branch_members(principal.project)})
    _authorize(request, principal, actor, "PutBranch")
    body = signed_calls.read_body(request, "branch", ("ttl",))
    ttl = body.get("ttl") or store.DEFAULT_TTL
    result = store.put_branch(principal.project, body["branch"], ttl, actor)
    status = HTTPStatus.CREATED if result.created else HTTPStatus.OK
    return JsonResponse(_with_key(principal, actor, result.branch.name, status), status=status)


@_api_view("CreateAccessKey", "branch")
def branch_key(principal: Principal, actor: audit.Actor, body: Body) -> JsonResponse:
    """Answer ``/api/branches/key``: the caller's access key of a branch."""
    branch = store.get_branch(principal.project, body["branch"])
    return JsonResponse(_with_key(principal, actor, branch.name, HTTPStatus.OK))


@_api_view("ListExecutions", "branch", "since")
def failures(principal: Principal, actor: audit.Actor, body: Body) -> JsonResponse:
    """Answer ``/api/branches/failures``: failed executions since a time (epoch seconds)."""
    del actor
    branch = store.get_branch(principal.project, body["branch"])
    try:
        since_ms = round(float(body.get("since", "0")) * 1000)
    except (ValueError, OverflowError):
        raise ValidationException("since: it is not a number of seconds") from None
    failed = store.list_failures(branch, since_ms)
    rows = [{"executionArn": arn, "status": status} for arn, status in failed]
    return JsonResponse({"executions": rows})


def _deployment_view(
    act: Callable[[deployments.Deployer, Any, str], Any],
) -> signed_calls.View:
    """Make a view for deployments, called with a key of the branch; the body has ``machines``.

    Each state machine is authorized separately, because a key may be limited to some of them.
    """

    @signed_calls.signed_view("POST")
    @wraps(act)
    def view(request: HttpRequest, principal: Principal, actor: audit.Actor) -> JsonResponse:
        headers = {"authorization": [request.headers.get("Authorization", "")]}
        region = sigv4.claimed("region", headers) or settings.STATEYARD_REGION
        body = asgi.parse_json(request.body)
        if not isinstance(body, dict) or [*body] != ["machines"]:
            raise ValidationException("the body must be an object with machines only")
        deployer = deployments.Deployer(principal, region, actor)
        return JsonResponse({"machines": act(deployer, body["machines"], request.path)})

    return view


@_deployment_view
def describe_machines(deployer: deployments.Deployer, machines: Any, path: str) -> Any:
    """Answer ``/api/branches/machines``: descriptions of the named state machines."""
    del path
    is_valid = isinstance(machines, dict) and all(isinstance(key, str) for key in machines.values())
    if not is_valid:
        raise ValidationException("machines must be an object of names and hashes")
    return deployments.describe_machines(deployer, machines)


@_deployment_view
def deploy_machines(deployer: deployments.Deployer, machines: Any, path: str) -> Any:
    """Answer ``/api/branches/deploy``: the outcome of each change."""
    if not isinstance(machines, list):
        raise ValidationException("machines must be a list")
    return deployments.deploy_machines(deployer, machines, path)


@_api_view("DeleteBranch", "branch")
def delete(principal: Principal, actor: audit.Actor, body: Body) -> JsonResponse:
    """Answer ``/api/branches/delete``: begin the deletion, which the server completes."""
    store.delete_branch(principal.project, body["branch"], actor)
    return JsonResponse({"branch": body["branch"]}, status=HTTPStatus.ACCEPTED)


def _with_key(
    principal: Principal, actor: audit.Actor, name: str, status: HTTPStatus
) -> dict[str, Any]:
    """Return a branch with the caller's key and the server's clock in seconds (``now``)."""
    access_key = store.put_key(principal.project, name, principal, actor)
    described = next(each for each in _branch_members(principal.project) if each["branch"] == name)
    return {
        **described,
        "parent": {"name": principal.project.name, "accountId": principal.project.account_id},
        "created": status == HTTPStatus.CREATED,
        "accessKeyId": access_key.key_id,
        "secretAccessKey": access.secret_for(access_key.key_id),
        "now": clock.now_ms() / 1000,
    }


def _branch_members(project: Project) -> list[dict[str, Any]]:
    """Return the branches of a project as JSON values."""
    return [
        {
            "branch": branch.name,
            "project": branch.project,
            "accountId": branch.account_id,
            "createdBy": branch.made_by,
            "createdAt": branch.made_ms / 1000,
            "expiresAt": branch.expires_ms / 1000,
            "archivedAt": branch.archived_ms and branch.archived_ms / 1000,
            "deleting": branch.deleting,
        }
        for branch in store.list_branches([project.pk]).get(project.pk, [])
    ]
