"""Turn a definition in YAML into JSON, which the graph, the checks and AWS's API need."""

from __future__ import annotations

import json
from typing import Any

import yaml

from console.yaml_loader import Loader

MOST_CHARACTERS = 262_144
"""A longer text takes seconds to read."""


def json_of_yaml(text: str) -> str | None:
    """Return a definition as JSON with lines and indentation; None if it is no YAML of one.

    A text with ``*`` aliases is none: a few lines of them can mean gigabytes.
    """
    if len(text) > MOST_CHARACTERS or text.lstrip()[:1] in ("", "{", "[", '"'):
        return None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader)):
            return None
        definition: Any = yaml.load(text, Loader)  # noqa: S506 - a safe loader with tags of its own
        if not isinstance(definition, dict) or "States" not in definition:
            return None
        return json.dumps(definition, indent=2, ensure_ascii=False, allow_nan=False)
    except (yaml.YAMLError, RecursionError, TypeError, ValueError):
        return None
