"""Write what people do to their own account into the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import access
from console.config import logging_setup
from console.db import audit
from console.db.audit import Actor
from console.models import Membership

if TYPE_CHECKING:
    from django.contrib.auth.models import User

__all__ = ["Actor", "own_actor", "record_for"]


def record_for(user: User, actor: Actor, action: str, reason: str = "") -> None:
    """Write an entry about a person into the audit of each of their projects.

    An administrator without a project has it in ``default``.
    """
    members = Membership.objects.select_related("project").filter(user=user)
    projects = [member.project for member in members] or [access.default_project()]
    for project in projects:
        audit.record(project, actor, action, user.get_username(), reason)


def own_actor(user: User) -> Actor:
    """Return a person as who acts in this request."""
    return Actor(user.get_username(), request_id=logging_setup.request_id())
