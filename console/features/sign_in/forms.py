"""Forms of the page *Sign-in*."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class GroupForm(PageForm):
    """The role of a group. ``project``: "" for the server."""

    provider = TextField()
    group = TextField()
    project = TextField(strip=False)
    role = TextField()


class RemovalForm(PageForm):
    """The number of the row to remove, "" to add one."""

    remove = TextField()


class LogoutForm(PageForm):
    """A logout token sent by a provider."""

    logout_token = TextField()
