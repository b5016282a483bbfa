"""The form that saves or deletes a view of the list of executions."""

from __future__ import annotations

from console.web.core.forms import PageForm, PresenceField, TextField


class SavedViewForm(PageForm):
    """A view to save or to delete.

    ``act``: ``save`` or ``delete``. ``name``: the name of the view. ``query``: its filters as a
    query string. ``view``: the view shown now, to return to after an error. ``machine``: the state
    machine if the form is on its page, else "". ``default``: that page opens with this view (shown
    as "Default view of this page").
    """

    act = TextField(strip=False)
    name = TextField(strip=False)
    machine = TextField(strip=False)
    view = TextField(strip=False)
    query = TextField(strip=False)
    default = PresenceField()
