"""The forms of the editor."""

from __future__ import annotations

from console.web.core.forms import PageForm, PresenceField, TextField


class DefinitionForm(PageForm):
    """A definition with its machine's name and role.

    ``revision``: of the machine that the text was made from; ``over``: of the one that the reader
    has seen and replaces; ``merge``: of the one that the reader has seen and merges with; ``check``:
    the text is only checked; ``note``: of the revision that the save makes.
    """

    # A browser sends the ends of lines as CR LF; the definition keeps those that were typed.
    text = TextField(strip=False, lines=True)
    name = TextField()
    role = TextField()
    revision = TextField(strip=False)
    over = TextField(strip=False)
    merge = TextField(strip=False)
    note = TextField()
    check = PresenceField()


class DraftForm(PageForm):
    """A draft. ``discard``: it is forgotten."""

    text = TextField(strip=False, lines=True)
    revision = TextField(strip=False)
    discard = PresenceField()


class CheckForm(PageForm):
    """The text that the editor holds while a person types."""

    text = TextField(strip=False)
