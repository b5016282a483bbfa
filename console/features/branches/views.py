"""Show branches under their parent on the page *Projects*, and delete them there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from console import access
from console.db import refusals
from console.errors import ServiceError
from console.features.branches import store
from console.features.branches.forms import DeleteBranchForm
from console.models import Membership
from console.web.core.scope import own_actor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

    from console.features.branches.store import ListedBranch

_DELETE = "DeleteBranch"


@dataclass(frozen=True, slots=True)
class ShownBranch:
    """A branch on the page Projects, and whether the reader may delete it."""

    branch: ListedBranch
    may_delete: bool


def shown_branches(memberships: Iterable[Membership]) -> dict[int, list[ShownBranch]]:
    """Return project id -> its branches, for the reader's projects."""
    rows = {row.project_id: row for row in memberships}
    return {
        project: [
            ShownBranch(branch, not branch.deleting and _may_delete(rows[project]))
            for branch in branches
        ]
        for project, branches in store.list_branches([*rows]).items()
    }


def _may_delete(membership: Membership) -> bool:
    principal = access.Principal(membership.user, membership.project, membership.role)
    return access.is_allowed(principal, _DELETE)


@require_POST
def delete_branch(request: HttpRequest) -> HttpResponse:
    """Begin the deletion of a branch, if the reader may delete it."""
    sent = DeleteBranchForm(request.POST).values
    rows = Membership.objects.filter(user=request.user.pk, project__name=sent["project"])
    membership = rows.select_related("project", "user").first()
    if membership is None:
        raise PermissionDenied("You are no member of such a project.")
    user: User = membership.user
    actor = own_actor(user)
    if not _may_delete(membership):
        refusals.record_refused(membership.project, actor, _DELETE, request.path)
        raise PermissionDenied("Only editors and owners of a project delete its branches.")
    try:
        store.delete_branch(membership.project, sent["branch"], actor)
    except ServiceError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"The branch {sent['branch']} is being deleted.")
    return redirect("projects")
