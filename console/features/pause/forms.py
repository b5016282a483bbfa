"""Form that pauses an execution."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField

_LONGEST_NOTE = 1000


class PauseForm(PageForm):
    """``clock``: whether waits and timeouts continue or stop; ``note``: the reason."""

    clock = TextField(strip=False)
    note = TextField(lines=True, cut=_LONGEST_NOTE)
