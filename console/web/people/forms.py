"""The form of a sign-in; forms for passwords are Django's."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class NextForm(PageForm):
    """The URL after a login. ``unsent``: a form was lost because the session had ended."""

    next = TextField(strip=False)
    unsent = TextField()
