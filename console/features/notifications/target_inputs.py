"""Mask the constant inputs of rule and schedule targets: payloads of future executions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from console.masking.mask import Mask
from console.masking.masked_execution import places_of

if TYPE_CHECKING:
    from console.models import Project

_PLACEHOLDER = re.compile(r'"?<([\w.-]+)>"?')


def mask_target_settings(project: Project, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a target's settings, masked for a reader without the right to change it."""
    if not project.masked:
        return settings
    mask = Mask(places_of(project.masked))
    masked = dict(settings)
    if isinstance(masked.get("Input"), str):
        masked["Input"] = mask.payload(masked["Input"])
    transformer = masked.get("InputTransformer")
    if isinstance(transformer, dict):
        template = str(transformer.get("InputTemplate", ""))
        masked["InputTransformer"] = transformer | {
            "InputTemplate": _masked_template(mask, template)
        }
    return masked


def _masked_template(mask: Mask, template: str) -> str:
    """Mask an input template, whose unquoted placeholders are not JSON."""
    quoted = _PLACEHOLDER.sub(r'"<\1>"', template)
    masked = mask.payload(quoted)
    return template if masked == quoted else masked
