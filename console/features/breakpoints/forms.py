"""The forms of the page of breakpoints."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class BreakpointForm(PageForm):
    """A breakpoint that is added, or by its ``place`` in the list removed."""

    state = TextField(strip=False)
    when = TextField(default="before")
    condition = TextField(lines=True)
    hits = TextField(default="1")
    place = TextField()


class LineForm(PageForm):
    """What a line of control continues with. ``halt``: the number of its halt."""

    halt = TextField()
    input = TextField(lines=True)
    variables = TextField(lines=True)
    output = TextField(lines=True)
    error = TextField()
    cause = TextField(lines=True)
    run_to = TextField(strip=False)
