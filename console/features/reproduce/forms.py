"""Form with which a reader runs an imported execution on this server (*Reproduce*)."""

from __future__ import annotations

from django import forms

from console.web.core.forms import PageForm, PresenceField, TextField

LIVE, RECORDED, STATE = "live", "recorded", "state"
CHANGED = "changed"
_UNKNOWN = "Choose what the calls do."


class ReproduceForm(PageForm):
    """The options of a reproduction.

    ``calls``: the calls that are made: with the value ``live``, recorded answers up to the failing
    state and real calls from there on; with ``recorded``, recorded answers only; with ``state``,
    real calls of an execution that starts in the failing state. ``machine``: the name of the state
    machine that is created. ``definition``: ``changed`` runs the current definition instead of the
    imported definition. ``stop``: set a breakpoint before the failing state.
    """

    machine = TextField()
    calls = forms.ChoiceField(
        choices=[(name, name) for name in (LIVE, RECORDED, STATE)],
        error_messages={"required": _UNKNOWN, "invalid_choice": _UNKNOWN},
    )
    definition = forms.ChoiceField(
        required=False,
        choices=[(CHANGED, CHANGED)],
        error_messages={"invalid_choice": "Choose one of the two definitions."},
    )
    stop = PresenceField()
