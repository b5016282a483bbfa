"""Form of named inputs."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class NamedInputForm(PageForm):
    """``act``: save, rename or delete. ``origin``: the execution with the input, or ""."""

    act = TextField(strip=False)
    name = TextField()
    new_name = TextField()
    origin = TextField(strip=False)
    input = TextField(strip=False)
