"""The forms of bulk actions."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField

_LONGEST_QUERY = 2000


class BulkForm(PageForm):
    """A job. ``numbers``: of the executions, as ranges; ``asked``: the query they came from."""

    action = TextField(strip=False)
    numbers = TextField(strip=False)
    asked = TextField(strip=False, cut=_LONGEST_QUERY)


class JobForm(PageForm):
    """``act``: ``resume``, or anything else to pause."""

    act = TextField(strip=False)
