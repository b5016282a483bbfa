"""The forms of the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.statuses import MachineType
from console.web.core.forms import PageForm, PresenceField, TextField

if TYPE_CHECKING:
    from collections.abc import Iterable


class OptionTextField(TextField):
    """One of some words, "" for anything else."""

    def __init__(self, options: Iterable[str]) -> None:
        super().__init__()
        self._options = frozenset(map(str, options))

    def to_python(self, value: Any) -> str:
        """Return the word."""
        text = super().to_python(value)
        return text if text in self._options else ""


class DefinitionForm(PageForm):
    """A definition with its machine's name and role.

    ``revision``: of the machine that the text was made from; ``over``: of the one that the reader
    has seen and replaces; ``merge``: of the one that the reader has seen and merges with;
    ``check``: the text is only checked; ``note``: of the revision that the save makes; ``type``:
    of a new machine; ``run``: the reader goes on to start an execution; ``tags``: of a new machine,
    a line each; ``convert``: which definition the text becomes, as ``convert_text`` takes it;
    ``page``: see ``DraftForm``.
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
    """A draft. ``discard``: it is forgotten; ``page``: the opened page of the editor.

    ``back``: it is discarded by a press on another page, which is shown again.
    """

    text = TextField(strip=False, lines=True)
    revision = TextField(strip=False)
    discard = PresenceField()
    back = PresenceField()
    page = TextField()


class CheckForm(PageForm):
    """The text that the editor holds while a person types.

    ``opened``: a JSON list with the names of unfolded groups; ``chosen``: of a state to be seen;
    ``drawn``: the digest of the graph that the editor shows; ``role``: of the state machine.
    """

    role = TextField()
    text = TextField(strip=False, lines=True)
    type = OptionTextField(MachineType)
    opened = TextField(strip=False)
    chosen = TextField(strip=False)
    drawn = TextField()


class GraphEditForm(PageForm):
    """An edit of the graph: the editor's text, the action and its arguments.

    ``state``: whose menu or form it is; ``source`` to ``index``: the edge; ``leads_to``: its new
    target, "" for the end; ``pasted``: copied states; ``piece``: of the palette, or which
    definition the text becomes. Every other field that is sent belongs to the form of the state.
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
