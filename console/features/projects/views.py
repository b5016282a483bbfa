"""The page *Projects*: the reader's projects, and all projects for an administrator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from console import access
from console.config.environment import REGION
from console.db.branch_names import MARK, is_branch
from console.errors import ServiceError
from console.feature import Hook, hooked
from console.features.projects import deletion, store
from console.features.projects.forms import DeleteForm, NewProjectForm, ProjectForm, RenameForm
from console.models import Membership
from console.statuses import ExecutionStatus
from console.web.core.scope import Scope, administrator_of, own_actor, person_of, render
from console.web.search import lists

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

    from console.db import audit
    from console.models import Project


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project of the reader, with counts.

    ``running``: running executions. ``failed``: executions that failed or timed out in 24 hours.
    ``waiting``: open tasks. ``branches``: a ``ShownBranch`` for each branch of the project, from
    the hook ``PROJECT_BRANCHES``.
    """

    project: Project
    role: str
    running: int
    failed: int
    waiting: int
    branches: list[Any]


@require_safe
def projects_page(request: HttpRequest) -> HttpResponse:
    """Show ``/projects/``."""
    return _render_projects(request)


@require_POST
def create_project(request: HttpRequest) -> HttpResponse:
    """Create a project; its owner is the reader unless the form names another person."""
    user = administrator_of(request, "CreateProject")
    sent = NewProjectForm(request.POST).values
    owner = sent["owner"] or user.get_username()
    try:
        project = store.create_project(sent["name"], sent["account"], owner, own_actor(user))
    except ServiceError as error:
        return _render_projects(request, 422, refused=error.message, sent=sent)
    messages.success(request, f"{project.name} has account {project.account_id}.")
    return redirect("projects")


@require_POST
def rename_project(request: HttpRequest) -> HttpResponse:
    """Rename a project."""
    user = administrator_of(request, "RenameProject")
    sent = RenameForm(request.POST).values
    try:
        project = store.rename_project(sent["name"], sent["new_name"], own_actor(user))
    except ServiceError as error:
        return _render_projects(request, 422, problem=error.message)
    messages.success(request, f"{sent['name']} is now called {project.name}.")
    return redirect("projects")


@require_POST
def archive_project(request: HttpRequest) -> HttpResponse:
    """Archive a project."""
    user = administrator_of(request, "ArchiveProject")
    return _change_project(request, "is archived.", store.archive_project, user)


@require_POST
def unarchive_project(request: HttpRequest) -> HttpResponse:
    """Make an archived project active again."""
    user = administrator_of(request, "UnarchiveProject")
    return _change_project(request, "is active again.", store.unarchive_project, user)


@require_POST
def delete_project(request: HttpRequest) -> HttpResponse:
    """Begin to delete an archived project. A job of the server finishes the deletion."""
    user = administrator_of(request, "DeleteProject")
    sent = DeleteForm(request.POST).values
    try:
        deletion.begin_deletion(sent["name"], sent["confirmed"], own_actor(user))
    except ServiceError as error:
        return _render_projects(request, 422, problem=error.message)
    messages.success(request, f"{sent['name']} is being deleted.")
    return redirect("projects")


def _change_project(
    request: HttpRequest,
    outcome: str,
    change: Callable[[str, audit.Actor], Project],
    user: User,
) -> HttpResponse:
    """Change the form's project, and show a message."""
    try:
        project = change(ProjectForm(request.POST).values["name"], own_actor(user))
    except ServiceError as error:
        return _render_projects(request, 422, problem=error.message)
    messages.success(request, f"{project.name} {outcome}")
    return redirect("projects")


def _render_projects(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    user = person_of(request)
    context: dict[str, Any] = {
        "section": "projects",
        "rows": _list_own_projects(user, _region(request)),
        "day": "started > 24 h ago",
        "administers": access.may_administer(user, "ListProjects"),
    }
    if context["administers"]:
        context["projects_of_server"] = [
            each for each in store.list_projects() if not is_branch(each.name)
        ]
        context["deleting"] = any(
            each.to_delete is not None for each in context["projects_of_server"]
        )
        context["past_deletions"] = deletion.past_deletions()
        context["fixed_names"] = store.FIXED_NAMES
    return render(request, "projects/page.html", {**context, **more}, status=status)


def _list_own_projects(user: User, region: str) -> list[ProjectRow]:
    """Return a person's projects, oldest membership first, with counts of a region.

    Branches are listed with their parents.
    """
    rows = []
    memberships = Membership.objects.filter(user=user).exclude(project__name__contains=MARK)
    memberships = memberships.select_related("project", "user").order_by("pk")
    branches: dict[int, list[Any]] = {}
    for list_branches in hooked(Hook.PROJECT_BRANCHES):
        branches |= list_branches(memberships)
    for membership in memberships:
        principal = access.Principal(user, membership.project, membership.role)
        counts = lists.status_counts(Scope.of(principal, region))
        failed = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
        rows.append(
            ProjectRow(
                membership.project,
                membership.get_role_display(),
                counts.get(ExecutionStatus.RUNNING, 0),
                sum(counts.get(ended, 0) for ended in failed),
                counts.get(lists.OPEN_TASKS, 0),
                branches.get(membership.project_id, []),
            )
        )
    return rows


def _region(request: HttpRequest) -> str:
    region = request.GET.get("region", "")
    return region if REGION.fullmatch(region) else settings.STATEYARD_REGION
