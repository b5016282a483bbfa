"""Forms of the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.statuses import MachineType
from console.web.core.forms import PageForm, PresenceField, TextField

if TYPE_CHECKING:
    from collections.abc import Iterable


class OptionTextField(TextField):
    """One of some words; other values become ""."""

    def __init__(self, options: Iterable[str]) -> None:
        super().__init__()
        self._options = frozenset(map(str, options))

    def to_python(self, value: Any) -> str:
        """Return the word."""
        text = super().to_python(value)
        return text if text in self._options else ""


class DefinitionForm(PageForm):
    """A definition with its state machine's name and role.

    ``revision``: the revision that the text was based on; ``over``: the later revision that the
    reader has agreed to overwrite; ``merge``: the later revision that the reader merges with;
    ``check``: only validate the text; ``note``: the description of the new revision; ``type`` and
    ``tags`` (one per line): those of a new state machine; ``run``: continue to the start form;
    ``convert``: what to make of a text that is YAML or a template: the logical id of its state
    machine (``conversion.convert_text``); ``page``: see ``DraftForm``.
    """

    # A browser sends the ends of lines as CR LF; the definition keeps those that were typed.
    text = TextField(strip=False, lines=True)
    name = TextField()
    role = TextField()
    revision = TextField(strip=False)
    over = TextField(strip=False)
    merge = TextField(strip=False)
    note = TextField()
    type = OptionTextField(MachineType)
    run = PresenceField()
    tags = TextField(strip=False, lines=True)
    convert = TextField()
    check = PresenceField()
    page = TextField()


class DraftForm(PageForm):
    """A draft. ``discard``: delete it; ``page``: the id of the opened page of the editor.

    ``back``: the draft is discarded on another page, which is shown again.
    """

    text = TextField(strip=False, lines=True)
    revision = TextField(strip=False)
    discard = PresenceField()
    back = PresenceField()
    page = TextField()


class CheckForm(PageForm):
    """The text of the editor while the reader types.

    ``opened``: a JSON list with the names of unfolded groups; ``chosen``: the selected state;
    ``drawn``: the digest of the displayed graph; ``role``: the state machine's role.
    """

    role = TextField()
    text = TextField(strip=False, lines=True)
    type = OptionTextField(MachineType)
    opened = TextField(strip=False)
    chosen = TextField(strip=False)
    drawn = TextField()


class GraphEditForm(PageForm):
    """An edit of the graph: the editor's text, the action and its arguments.

    ``state``: the state of the menu or form; ``name``: its new name; ``source``, ``target``,
    ``occurrence``, ``owner``, ``index``: the edge, as of ``GraphEdge``; ``leads_to``: its new
    target, "" for the end; ``pasted``: copied states; ``piece``: the item of the palette to insert,
    or the choice of a conversion. The request also has the fields of the state's own form.
    """

    text = TextField(strip=False, lines=True)
    act = TextField()
    state = TextField(strip=False)
    name = TextField(strip=False)
    piece = TextField()
    source = TextField(strip=False)
    target = TextField(strip=False)
    occurrence = TextField()
    owner = TextField(strip=False)
    index = TextField()
    leads_to = TextField(strip=False)
    pasted = TextField(strip=False, lines=True)
