"""Record changes of a person's own account in the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import access
from console.db import audit
from console.db.audit import Actor
from console.models import Membership

if TYPE_CHECKING:
    from django.contrib.auth.models import User

__all__ = ["Actor", "record_for"]


def record_for(user: User, actor: Actor, action: str, reason: str = "") -> None:
    """Write an audit entry about a person into each of their projects.

    For an administrator without a project, it is written into ``default``.
    """
    members = Membership.objects.select_related("project").filter(user=user)
    projects = [member.project for member in members] or [access.default_project()]
    for project in projects:
        audit.record(project, actor, action, user.get_username(), reason)
