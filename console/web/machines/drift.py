"""Detect drift: a state machine was changed after its last ``stateyard deploy``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.config import former_name
from console.models import MachineRevision, Tag

if TYPE_CHECKING:
    from console.models import StateMachine

DEPLOYED = "stateyard:deployed"
"""Key of the tag with the SHA-256 of the text that was deployed last."""
_SOURCE = "stateyard:source"
"""Key of the tag with the ARN that the deployed definition was pulled from."""
_MOST = 20


@dataclass(frozen=True, slots=True)
class Drift:
    """Whether a state machine was changed after its last deployment.

    ``deployed``: the revision with the deployed definition, None if it was not kept; ``later``: at
    most 20 revisions after it, newest first; the newest 20 of all if ``deployed`` is None;
    ``source``: the ARN that the definition was pulled from before it was deployed, "" if it was not
    pulled.
    """

    changed: bool
    deployed: MachineRevision | None
    later: list[MachineRevision]
    source: str = ""


def drift_of(machine: StateMachine) -> Drift | None:
    """Return the drift of a state machine, None if it was never deployed."""
    keys = former_name.tag_keys((DEPLOYED, _SOURCE))
    tags = Tag.objects.filter(arn=machine.arn, key__in=keys)
    values = former_name.current_tags(tags.values_list("key", "value"))
    if DEPLOYED not in values:
        return None
    text_hash, source = values[DEPLOYED], values.get(_SOURCE, "")
    rows = MachineRevision.objects.filter(state_machine=machine).select_related("definition")
    deployed = rows.filter(definition_id=text_hash).order_by("-number").first()
    if machine.definition_id == text_hash or _is_same(machine, deployed):
        return Drift(changed=False, deployed=deployed, later=[], source=source)
    after = rows.filter(number__gt=deployed.number) if deployed else rows
    later = list(after.order_by("-number")[:_MOST])
    return Drift(changed=True, deployed=deployed, later=later, source=source)


def _is_same(machine: StateMachine, deployed: MachineRevision | None) -> bool:
    """Whether two texts are the same JSON."""
    if deployed is None:
        return False
    try:
        return bool(json.loads(machine.definition.text) == json.loads(deployed.definition.text))
    except (ValueError, RecursionError):
        return False
