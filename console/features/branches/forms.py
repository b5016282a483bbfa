"""Form that deletes a branch."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class DeleteBranchForm(PageForm):
    """The name of a project, and the name of its branch."""

    project = TextField(strip=False)
    branch = TextField(strip=False)
