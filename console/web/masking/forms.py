"""Forms of masking."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class PathsForm(PageForm):
    """The masked paths, one per line.

    ``revision``: of the paths that were on display; ``over``: of those that the reader replaces.
    """

    paths = TextField(strip=False)
    revision = TextField(strip=False)
    over = TextField(strip=False)


class RevealForm(PageForm):
    """The reason for revealing values; ``act``: ``hide`` to mask them again."""

    act = TextField(strip=False)
    reason = TextField()
    next = TextField(strip=False)
