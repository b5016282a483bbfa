"""Forms of bulk actions."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField

_LONGEST_QUERY = 2000
_LONGEST_NOTE = 1000
_LONGEST_ERROR, _LONGEST_CAUSE = 256, 32_768


class BulkForm(PageForm):
    """A new job. ``numbers``: its executions, as ranges; ``asked``: the query of their list.

    ``error`` and ``cause``: for a stop. ``clock`` and ``note``: for a pause.
    """

    action = TextField(strip=False)
    numbers = TextField(strip=False)
    asked = TextField(strip=False, cut=_LONGEST_QUERY)
    error = TextField(cut=_LONGEST_ERROR)
    cause = TextField(lines=True, cut=_LONGEST_CAUSE)
    clock = TextField(strip=False)
    note = TextField(lines=True, cut=_LONGEST_NOTE)


class JobForm(PageForm):
    """``act``: ``resume``; other values pause the job."""

    act = TextField(strip=False)
