"""Forms of the execution pages."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class NoteForm(PageForm):
    """``act``: ``note`` to write the note; ``assign`` and ``unassign`` change the assignee.

    Pages of the previous release send ``look`` and ``leave`` for the latter two.
    """

    act = TextField(strip=False)
    note = TextField(strip=False)
    next = TextField(strip=False)


class StopForm(PageForm):
    """The error and cause of a stop."""

    error = TextField(strip=False)
    cause = TextField(strip=False)
