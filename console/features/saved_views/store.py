"""Store saved views: named lists of executions of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.db import audit, clock
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.models import SavedView

if TYPE_CHECKING:
    from console.models import Project

MOST = 30
NAME, QUERY = 80, 4_000


def put_view(
    project: Project, name: str, query: str, default_of: str | None, actor: audit.Actor
) -> SavedView:
    """Save a list under a name; replace an existing one.

    ``default_of``: the state machine whose page opens with this view; "" for no machine, None for
    no change. Raise ValidationException.
    """
    name = " ".join(name.split())
    if not name or len(name) > NAME or not name.isprintable():
        raise ValidationException(f"The name must have 1 to {NAME} printable characters.")
    if len(query) > QUERY:
        raise ValidationException(f"The filter is longer than {QUERY} characters.")

    def store() -> SavedView:
        views = SavedView.objects.select_for_update().filter(project=project)
        view = views.filter(name=name).first() or SavedView(project=project, name=name)
        if view.pk is None and views.count() >= MOST:
            raise ValidationException(f"At most {MOST} views a project: delete an old one.")
        view.query, view.saved_by, view.saved_ms = query, actor.name, clock.now_ms()
        if default_of is not None:
            if default_of:
                views.filter(default_of=default_of).update(default_of="")
            view.default_of = default_of
        view.save()
        audit.record(project, actor, "PutView", name, query)
        return view

    return write(store)


def delete_view(project: Project, name: str, actor: audit.Actor) -> None:
    """Delete a view; raise ResourceNotFound."""

    def store() -> None:
        deleted_count, _ = SavedView.objects.filter(project=project, name=name).delete()
        if not deleted_count:
            raise ServiceError(ErrorCode.ResourceNotFound, f"There is no view “{name}” any more.")
        audit.record(project, actor, "DeleteView", name)

    write(store)
