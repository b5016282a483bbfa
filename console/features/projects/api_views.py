"""HTTP API of projects for administrators of the server: JSON, signed with any of their keys."""

from __future__ import annotations

from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.http import JsonResponse

from console import access
from console.awsapi import signed_calls
from console.db import audit, refusals
from console.errors import ErrorCode, ServiceError
from console.features.projects import deletion, store

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

    from console.access import Principal
    from console.awsapi.signed_calls import Body
    from console.features.projects.store import ProjectSummary

    Act = Callable[[audit.Actor, Body, str], JsonResponse]


def _api_view(action: str, required: str = "") -> Callable[[Act], signed_calls.View]:
    """Make a view of a function. ``action``: the required right."""

    def make(act: Act) -> signed_calls.View:
        @signed_calls.signed_view("POST")
        @wraps(act)
        def view(
            request: HttpRequest, principal: Principal, actor: audit.Actor, project_name: str
        ) -> JsonResponse:
            _authorize(request, principal, actor, action)
            return act(actor, signed_calls.read_body(request, required), project_name)

        return view

    return make


@signed_calls.signed_view("GET", "POST")
def projects(request: HttpRequest, principal: Principal, actor: audit.Actor) -> JsonResponse:
    """Answer ``/api/projects``: list the projects of the server, or create one."""
    if request.method == "GET":
        _authorize(request, principal, actor, "ListProjects")
        return JsonResponse({"projects": [_members(each) for each in store.list_projects()]})
    _authorize(request, principal, actor, "CreateProject")
    body = signed_calls.read_body(request, "name", ("accountId", "owner"))
    owner = body.get("owner") or actor.name
    created = store.create_project(body["name"], body.get("accountId", ""), owner, actor)
    return _answer(created.name, HTTPStatus.CREATED)


@signed_calls.signed_view("GET")
def project(
    request: HttpRequest, principal: Principal, actor: audit.Actor, project_name: str
) -> JsonResponse:
    """Answer ``/api/projects/NAME``."""
    _authorize(request, principal, actor, "ListProjects")
    return _answer(project_name)


@_api_view("RenameProject", "newName")
def rename(actor: audit.Actor, body: Body, name: str) -> JsonResponse:
    """Answer ``/api/projects/NAME/rename``."""
    return _answer(store.rename_project(name, body["newName"], actor).name)


@_api_view("ArchiveProject")
def archive(actor: audit.Actor, body: Body, name: str) -> JsonResponse:
    """Answer ``/api/projects/NAME/archive``."""
    del body
    return _answer(store.archive_project(name, actor).name)


@_api_view("UnarchiveProject")
def unarchive(actor: audit.Actor, body: Body, name: str) -> JsonResponse:
    """Answer ``/api/projects/NAME/unarchive``."""
    del body
    return _answer(store.unarchive_project(name, actor).name)


@_api_view("DeleteProject", "confirm")
def delete(actor: audit.Actor, body: Body, name: str) -> JsonResponse:
    """Answer ``/api/projects/NAME/delete``: begin a deletion, which the server completes."""
    deletion.begin_deletion(name, body["confirm"], actor)
    return _answer(name, HTTPStatus.ACCEPTED)


def _answer(name: str, status: int = HTTPStatus.OK) -> JsonResponse:
    for summary in store.list_projects():
        if summary.name == name:
            return JsonResponse(_members(summary), status=status)
    raise store.missing_project(name)


def _members(summary: ProjectSummary) -> dict[str, Any]:
    """Return a project as JSON; ``deletion`` is null unless it is being deleted."""
    progress = None
    if summary.to_delete is not None:
        progress = {"executions": summary.to_delete, "removed": summary.deleted}
    return {
        "name": summary.name,
        "accountId": summary.account_id,
        "members": summary.members,
        "owners": summary.owners,
        "runningExecutions": summary.running,
        "archivedAt": summary.archived_ms and summary.archived_ms / 1000,
        "deletion": progress,
    }


def _authorize(request: HttpRequest, principal: Principal, actor: audit.Actor, action: str) -> None:
    """Raise AccessDeniedException unless an administrator's key allows the action."""
    try:
        access.check_scope(principal, f"stateyard:{action}")
    except access.Denied as error:
        refusals.record_refused(principal.project, actor, action, request.path)
        raise ServiceError(ErrorCode.AccessDeniedException, str(error)) from None
    if access.may_administer(principal.user, action):
        return
    refusals.record_refused(principal.project, actor, action, request.path)
    raise ServiceError(
        ErrorCode.AccessDeniedException,
        f"User: {actor.name} is not authorized to perform: {action}: it takes an administrator of"
        " the server",
    )
