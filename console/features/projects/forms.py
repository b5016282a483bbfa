"""Forms of the page Projects."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class NewProjectForm(PageForm):
    """A new project: ``account``: empty for a generated one; ``owner``: a person's name."""

    name = TextField()
    account = TextField()
    owner = TextField()


class RenameForm(PageForm):
    """The name of a project, and its new one."""

    name = TextField(strip=False)
    new_name = TextField()


class ProjectForm(PageForm):
    """The name of a project."""

    name = TextField(strip=False)


class DeleteForm(PageForm):
    """The name of a project, and the text typed to confirm."""

    name = TextField(strip=False)
    confirmed = TextField()
