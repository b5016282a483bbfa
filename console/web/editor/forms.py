"""The forms of the editor."""

from __future__ import annotations

from console.web.core.forms import PageForm, PresenceField, TextField


class DefinitionForm(PageForm):
    """A definition with its machine's name and role.

    ``revision``: of the machine that the text was made from; ``over``: of the one that the reader
    has seen and replaces; ``merge``: of the one that the reader has seen and merges with;
    ``check``: the text is only checked; ``note``: of the revision that the save makes.
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

    text = TextField(strip=False, lines=True)


class GraphEditForm(PageForm):
    """An edit of the graph: the text that the editor holds, the act, and what it is about.

    ``state``: whose menu or form it is; ``source`` to ``index``: the edge. Every other field that
    is sent belongs to the form of the state.
    """

    text = TextField(strip=False, lines=True)
    act = TextField()
    state = TextField(strip=False)
    name = TextField()
    piece = TextField()
    source = TextField(strip=False)
    target = TextField(strip=False)
    occurrence = TextField()
    owner = TextField(strip=False)
    index = TextField()
