"""Forms of the breakpoints page."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class BreakpointForm(PageForm):
    """A breakpoint to add, or the text of the ``place`` to remove."""

    state = TextField(strip=False)
    when = TextField(default="before")
    condition = TextField(lines=True)
    hits = TextField(default="1")
    place = TextField(strip=False)


class LineForm(PageForm):
    """How a line of control continues. ``halt``: the number of its halt."""

    halt = TextField()
    input = TextField(lines=True)
    variables = TextField(lines=True)
    output = TextField(lines=True)
    error = TextField()
    cause = TextField(lines=True)
    run_to = TextField(strip=False)
