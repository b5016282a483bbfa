"""Compute the input that a target gets from an event: all, a part, a constant, or a template.

Source: "Amazon EventBridge input transformation" of the EventBridge User Guide.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from collections.abc import Callable

_STEP = re.compile(r"\.([^.\[\]'\"*]+)|\[(\d+)\]|\[['\"]([^'\"]+)['\"]\]")
_VARIABLE = re.compile(r"<([\w.-]+)>")
_MISSING = object()


class InputError(ValueError):
    """A target's input settings are invalid; the message names the setting."""


def check_input(settings: dict[str, Any]) -> None:
    """Raise ``InputError`` for an invalid input, path or template."""
    names = [name for name in ("Input", "InputPath", "InputTransformer") if settings.get(name)]
    if len(names) > 1:
        raise InputError(f"Use only one of Input, InputPath and InputTransformer, not {names}")
    if settings.get("Input"):
        try:
            engine.loads(settings["Input"])
        except engine.JsonTextError as error:
            raise InputError(f"Input is not JSON: {error}") from None
    paths = dict((settings.get("InputTransformer") or {}).get("InputPathsMap") or {})
    if settings.get("InputPath"):
        paths["InputPath"] = settings["InputPath"]
    for name, path in paths.items():
        _steps(path, name)
    _check_template(str((settings.get("InputTransformer") or {}).get("InputTemplate") or ""))


def _check_template(template: str) -> None:
    """Refuse a placeholder as a key in a JSON object template, as InputTransformer does.

    A placeholder that InputPathsMap does not define is accepted: AWS documents no refusal of it.
    """
    if not template.lstrip().startswith("{"):
        return
    quoted = _quoted_characters(template)
    for match in _VARIABLE.finditer(template):
        inside, end = quoted[match.start()], match.end()
        if inside:
            end = next((at for at in range(end, len(template)) if not quoted[at]), end) + 1
        if template[end:].lstrip().startswith(":"):
            raise InputError(
                f"InputTemplate: {match[0]} is a key of a JSON object; use it in values only"
            )


def build_input(event: str, settings: dict[str, Any], rule_arn: str, rule_name: str) -> str:
    """Return the text sent for an event (JSON text), by a target's valid settings."""
    if settings.get("Input"):
        return str(settings["Input"])
    if settings.get("InputPath"):
        value = _value_at(json.loads(event), _steps(settings["InputPath"], "InputPath"))
        return "null" if value is _MISSING else _dumps(value)
    transformer = settings.get("InputTransformer")
    if transformer:
        return _fill_template(event, transformer, {"rule-arn": rule_arn, "rule-name": rule_name})
    return event


def map_texts(event: str, change: Callable[[str], str]) -> str:
    """Return an event with a function applied to each string; member names stay."""
    return engine.dumps(_mapped(engine.loads(event), change))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(member, change) for name, member in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def fill_context(text: str, attributes: dict[str, str]) -> str:
    """Replace EventBridge Scheduler's context attributes in an input by their values.

    ``attributes``: name without ``aws.scheduler.`` -> value.
    """
    for name, value in attributes.items():
        text = text.replace(f"<aws.scheduler.{name}>", value)
    return text


def _fill_template(event: str, transformer: dict[str, Any], about: dict[str, str]) -> str:
    value = json.loads(event)
    variables: dict[str, Any] = {f"aws.events.{name}": text for name, text in about.items()}
    variables["aws.events.event.ingestion-time"] = value.get("time")
    variables["aws.events.event.json"] = value
    variables["aws.events.event"] = {k: field for k, field in value.items() if k != "detail"}
    for name, path in (transformer.get("InputPathsMap") or {}).items():
        selected = _value_at(value, _steps(path, name))
        if selected is not _MISSING:
            variables[name] = selected
    template = str(transformer["InputTemplate"])
    quoted = _quoted_characters(template)

    def fill(match: re.Match[str]) -> str:
        variable = variables.get(match[1], _MISSING)
        inside = quoted[match.start()]
        if variable is _MISSING:
            return "" if inside else '""'
        return _inside(variable) if inside else _dumps(variable)

    return _VARIABLE.sub(fill, template)


def _quoted_characters(template: str) -> list[bool]:
    """Return for each character whether it is between quotation marks."""
    flags, inside, escaped = [], False, False
    for character in template:
        if character == '"' and not escaped:
            inside = not inside
        escaped = character == "\\" and not escaped
        flags.append(inside)
    return flags


def _inside(value: Any) -> str:
    """Return a value escaped for use inside a JSON string."""
    return _dumps(value if isinstance(value, str) else _dumps(value))[1:-1]


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _steps(path: Any, name: str) -> list[str | int]:
    """Parse a path such as ``$.detail.items[0]``."""
    if not isinstance(path, str) or not path.startswith("$"):
        raise InputError(f"{name}: {path!r} is not a path such as $.detail")
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise InputError(f"{name}: {path!r} is not a path such as $.detail")
        steps.append(int(match[2]) if match[2] else match[1] or match[3])
        at = match.end()
    return steps


def _value_at(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        fits = isinstance(value, list) if isinstance(step, int) else isinstance(value, dict)
        try:
            value = value[step] if fits else _MISSING
        except (KeyError, IndexError):
            value = _MISSING
        if value is _MISSING:
            return _MISSING
    return value
