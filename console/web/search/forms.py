"""The form of saved views."""

from __future__ import annotations

from console.web.core.forms import PageForm, PresenceField, TextField


class SavedViewForm(PageForm):
    """A view to save or to delete. ``query``: its list; ``view``: the one now on display.

    ``machine``: the one whose page the form stands on; ``default``: that page begins with the view.
    """

    act = TextField(strip=False)
    name = TextField(strip=False)
    machine = TextField(strip=False)
    view = TextField(strip=False)
    query = TextField(strip=False)
    default = PresenceField()
