"""A JSON Schema of Amazon States Language, for editors: fields, types and required fields.

Editors complete and underline with it while somebody types. It is generated from the tables in
``fields`` and ``rules``. The schema never refuses a definition that ``check`` accepts; ``check``
finds more, such as a ``Next`` that names no state. The draft is 7, which every editor reads.
"""

from __future__ import annotations

from typing import Any

from engine.language import fields
from engine.language.choice import LOGIC, PRESENCE, TYPE_TESTS
from engine.language.model import QueryLanguage
from engine.language.recovery import CATCHER_FIELDS, RETRIER_FIELDS
from engine.language.rules import OPERATORS, TOP_FIELDS

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_JSONATA_TEXT = r"^\s*\{%[\s\S]*%\}\s*$"
_PATH_OR_NULL: Schema = {"type": ["string", "null"]}
_ANYTHING: Schema = {}
_PATH, _JSONATA = QueryLanguage.JSONPATH, QueryLanguage.JSONATA
_LANGUAGES = {_PATH: (_PATH, _JSONATA), _JSONATA: (_JSONATA,)}
"""Language of a machine -> the languages that its states may have."""


def json_schema() -> Schema:
    """Return the schema of a state machine in either query language."""
    definitions: Schema = {}
    for machine in (_PATH, _JSONATA):
        definitions |= _blocks(machine)
        for language in _LANGUAGES[machine]:
            definitions |= {
                f"{kind}{_suffix(machine, language)}": _state(kind, machine, language)
                for kind in fields.TYPES
            }
    for language in (_PATH, _JSONATA):
        definitions[f"Retrier{language}"] = _retrier()
        definitions[f"Catcher{language}"] = _catcher(language)
    definitions["RuleJSONPath"] = _rule()
    definitions["ConditionJSONPath"] = _condition()
    definitions["RuleJSONata"] = _jsonata_rule()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Amazon States Language",
        "type": "object",
        "properties": {
            "Comment": _TEXT,
            "QueryLanguage": {"enum": [_PATH.value, _JSONATA.value]},
            "StartAt": _TEXT,
            "States": _OBJECT,
            "TimeoutSeconds": _integer(1),
            "Version": _TEXT,
        },
        "required": ["StartAt", "States"],
        "additionalProperties": False,
        "if": {
            "properties": {"QueryLanguage": {"const": _JSONATA.value}},
            "required": ["QueryLanguage"],
        },
        "then": {"properties": {"States": _refer("States", _JSONATA)}},
        "else": {"properties": {"States": _refer("States", _PATH)}},
        "definitions": definitions,
    }


def _suffix(machine: QueryLanguage, language: QueryLanguage) -> str:
    """Name the states of a language: a JSONPath machine may have states in either one."""
    return language.value if machine is language else f"{language.value}In{machine.value}"


def _refer(name: str, *languages: QueryLanguage) -> Schema:
    suffix = languages[0].value if len(languages) == 1 else _suffix(*languages)
    return {"$ref": f"#/definitions/{name}{suffix}"}


# -- blocks and states -----------------------------------------------------------------------------


def _blocks(machine: QueryLanguage) -> Schema:
    """Return the schemas of States, one state, a branch and an item processor."""
    parts = {"Comment": _TEXT, "StartAt": _TEXT, "States": _refer("States", machine)}
    block = {"type": "object", "required": ["StartAt", "States"], "additionalProperties": False}
    own = [language.value for language in _LANGUAGES[machine]]
    return {
        f"States{machine}": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"minLength": 1, "maxLength": 80},
            "additionalProperties": _refer("State", machine),
        },
        f"State{machine}": {
            "type": "object",
            "required": ["Type"],
            "properties": {"Type": {"enum": list(fields.TYPES)}, "QueryLanguage": {"enum": own}},
            "allOf": [
                {"if": _has_type(kind, machine, language), "then": _refer(kind, machine, language)}
                for kind in fields.TYPES
                for language in _LANGUAGES[machine]
            ],
        },
        f"Branch{machine}": {**block, "properties": parts},
        f"Processor{machine}": {**block, "properties": {**parts, "ProcessorConfig": _OBJECT}},
    }


def _state(kind: str, machine: QueryLanguage, language: QueryLanguage) -> Schema:
    """Return the schema of a state type."""
    names = fields.fields_of(kind, language)
    schema: Schema = {
        "properties": {name: _field(name, machine, language) for name in names},
        "required": ["Type", *fields.REQUIRED.get(kind, ())],
        "additionalProperties": False,
    }
    groups = [
        present
        for group in fields.EXCLUSIVE.get(kind, ())
        if len(present := [name for name in group if name in names]) > 1
    ]
    rules: list[Schema] = [
        {"not": {"required": [first, second]}}
        for group in groups
        for index, first in enumerate(group)
        for second in group[index + 1 :]
    ]
    if "Next" in names:
        rules.append({"oneOf": [{"required": ["Next"]}, {"required": ["End"]}]})
    return {**schema, "allOf": rules} if rules else schema


def _field(name: str, machine: QueryLanguage, language: QueryLanguage) -> Schema:
    """Return the schema of a field of a state."""
    blocks: dict[str, Schema] = {
        "Branches": _list(_refer("Branch", machine), least=1),
        "ItemProcessor": _refer("Processor", machine),
        "Iterator": _refer("Processor", machine),
        "Retry": _list(_refer("Retrier", language)),
        "Catch": _list(_refer("Catcher", language)),
        "Choices": _list(_refer("Rule", language), least=1),
    }
    schema = (blocks | _FIELDS).get(name)
    return _scalar(name, language) if schema is None else schema


def _scalar(name: str, language: QueryLanguage) -> Schema:
    """Return the schema of a number or a text, which JSONata states may also compute."""
    literal = _NUMBERS.get(name, _TEXT)
    if language is _JSONATA and name in _NUMBERS:
        return {"anyOf": [literal, {"type": "string", "pattern": _JSONATA_TEXT}]}
    return literal


def _integer(least: int) -> Schema:
    return {"type": "integer", "minimum": least}


def _list(items: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": least}


_NUMBERS: dict[str, Schema] = {
    "TimeoutSeconds": _integer(1),
    "HeartbeatSeconds": _integer(1),
    "MaxConcurrency": _integer(0),
    "ToleratedFailureCount": _integer(0),
    "ToleratedFailurePercentage": {"type": "number", "minimum": 0, "maximum": 100},
    "Seconds": _integer(0),
}
_FIELDS: dict[str, Schema] = {
    "Type": {"enum": list(fields.TYPES)},
    "QueryLanguage": {"enum": [_PATH.value, _JSONATA.value]},
    "End": {"const": True},
    "InputPath": _PATH_OR_NULL,
    "OutputPath": _PATH_OR_NULL,
    "ResultPath": _PATH_OR_NULL,
    "Output": _ANYTHING,
    "Result": _ANYTHING,
    "Parameters": _ANYTHING,
    "Arguments": _ANYTHING,
    "ResultSelector": _ANYTHING,
    "ItemSelector": _ANYTHING,
    "Items": {"type": ["array", "string", "object"]},
    "Assign": _OBJECT,
    "Credentials": _OBJECT,
    "ItemReader": _OBJECT,
    "ItemBatcher": _OBJECT,
    "ResultWriter": _OBJECT,
}


# -- Retry, Catch, Choices -------------------------------------------------------------------------


def _retrier() -> Schema:
    types: dict[str, Schema] = {
        "ErrorEquals": _list(_TEXT, least=1),
        "IntervalSeconds": _integer(1),
        "MaxAttempts": _integer(0),
        "BackoffRate": {"type": "number", "minimum": 1},
        "MaxDelaySeconds": _integer(1),
        "JitterStrategy": {"enum": ["NONE", "FULL"]},
    }
    return _closed(RETRIER_FIELDS, types, ["ErrorEquals"])


def _catcher(language: QueryLanguage) -> Schema:
    foreign = "Output" if language is _PATH else "ResultPath"
    types: dict[str, Schema] = {
        "ErrorEquals": _list(_TEXT, least=1),
        "ResultPath": _PATH_OR_NULL,
        "Output": _ANYTHING,
        "Assign": _OBJECT,
    }
    names = tuple(name for name in CATCHER_FIELDS if name != foreign)
    return _closed(names, types, ["ErrorEquals", "Next"])


def _jsonata_rule() -> Schema:
    types: dict[str, Schema] = {
        "Condition": {"type": ["boolean", "string"]},
        "Output": _ANYTHING,
        "Assign": _OBJECT,
    }
    return _closed((*TOP_FIELDS, "Output", "Condition"), types, ["Condition", "Next"])


def _rule() -> Schema:
    rule = _condition()
    return {**rule, "properties": {**rule["properties"], "Next": _TEXT}, "required": ["Next"]}


def _condition() -> Schema:
    """Return the schema of a comparison, or of And, Or and Not around others."""
    inner = _refer("Condition", _PATH)
    types: dict[str, Schema] = {
        **{name: _operand(name) for name in OPERATORS},
        **{name: inner if name == "Not" else _list(inner, least=1) for name in LOGIC},
        "Assign": _OBJECT,
    }
    names = ("Variable", *(name for name in TOP_FIELDS if name != "Next"), *types)
    schema = _closed(names, types, [])
    return {**schema, "oneOf": [{"required": [name]} for name in ("Variable", *LOGIC)]}


def _operand(name: str) -> Schema:
    """Return the schema of the value that an operator compares with."""
    if name in (*TYPE_TESTS, PRESENCE) or name == "BooleanEquals":
        return {"type": "boolean"}
    return {"type": "number"} if name.startswith("Numeric") and name[-4:] != "Path" else _TEXT


def _closed(names: tuple[str, ...], types: dict[str, Schema], required: list[str]) -> Schema:
    """Return the schema of an object with these fields and no others; text unless ``types``."""
    return {
        "type": "object",
        "properties": {name: types.get(name, _TEXT) for name in names},
        "required": required,
        "additionalProperties": False,
    }


def _has_type(kind: str, machine: QueryLanguage, language: QueryLanguage) -> Schema:
    """Return the condition that a state has this type and query language."""
    own = {"QueryLanguage": {"const": language.value}}
    return {
        "properties": {"Type": {"const": kind}, **own},
        "required": ["Type"] if language is machine else ["Type", "QueryLanguage"],
    }
