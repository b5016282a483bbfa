"""The form for breakpoints and faults of a state machine's next starts."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class NextStartsForm(PageForm):
    """The number of starts and of hours; ``set_ms``: when the settings to remove were made."""

    act = TextField()
    starts = TextField()
    hours = TextField()
    set_ms = TextField()
