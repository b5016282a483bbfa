"""The table of the fields that each state type may have, in each query language.

For a new ASL field, change this table first.
"""

from __future__ import annotations

from enum import StrEnum

from engine.language.model import QueryLanguage


class FieldLanguage(StrEnum):
    """The query language in which a field is allowed."""

    JSONPATH = "JSONPath"  # in JSONPath states only
    JSONATA = "JSONata"  # in JSONata states only
    BOTH = "both"  # in either


_PATH, _JSONATA, _BOTH = FieldLanguage.JSONPATH, FieldLanguage.JSONATA, FieldLanguage.BOTH

TYPES = ("Task", "Wait", "Pass", "Succeed", "Fail", "Choice", "Parallel", "Map")

_COMMON = {"Type": _BOTH, "Comment": _BOTH, "QueryLanguage": _BOTH}
_GOES_ON = {"Next": _BOTH, "End": _BOTH}
_IN_OUT = {"InputPath": _PATH, "OutputPath": _PATH}
_RESULT = {"ResultPath": _PATH}
_OUTPUT = {"Output": _JSONATA}
_ASSIGN = {"Assign": _BOTH}
_RECOVERY = {"Retry": _BOTH, "Catch": _BOTH}
_WORK = {**_IN_OUT, **_RESULT, **_OUTPUT, **_ASSIGN, **_RECOVERY, "ResultSelector": _PATH}

FIELDS: dict[str, dict[str, FieldLanguage]] = {
    "Task": {
        **_COMMON,
        **_GOES_ON,
        **_WORK,
        "Parameters": _PATH,
        "Arguments": _JSONATA,
        "Resource": _BOTH,
        "TimeoutSeconds": _BOTH,
        "HeartbeatSeconds": _BOTH,
        "TimeoutSecondsPath": _PATH,
        "HeartbeatSecondsPath": _PATH,
        "Credentials": _BOTH,
    },
    "Parallel": {
        **_COMMON,
        **_GOES_ON,
        **_WORK,
        "Parameters": _PATH,
        "Arguments": _JSONATA,
        "Branches": _BOTH,
    },
    "Map": {
        **_COMMON,
        **_GOES_ON,
        **_WORK,
        "Parameters": _PATH,
        "ItemProcessor": _BOTH,
        "Iterator": _BOTH,
        "ItemSelector": _BOTH,
        "ItemReader": _BOTH,
        "ItemBatcher": _BOTH,
        "ResultWriter": _BOTH,
        "Label": _BOTH,
        "Items": _JSONATA,
        "ItemsPath": _PATH,
        "MaxConcurrency": _BOTH,
        "MaxConcurrencyPath": _PATH,
        "ToleratedFailureCount": _BOTH,
        "ToleratedFailureCountPath": _PATH,
        "ToleratedFailurePercentage": _BOTH,
        "ToleratedFailurePercentagePath": _PATH,
    },
    "Pass": {
        **_COMMON,
        **_GOES_ON,
        **_IN_OUT,
        **_RESULT,
        **_OUTPUT,
        **_ASSIGN,
        "Parameters": _PATH,
        "Result": _PATH,
    },
    "Wait": {
        **_COMMON,
        **_GOES_ON,
        **_IN_OUT,
        **_OUTPUT,
        **_ASSIGN,
        "Seconds": _BOTH,
        "Timestamp": _BOTH,
        "SecondsPath": _PATH,
        "TimestampPath": _PATH,
    },
    "Choice": {**_COMMON, **_IN_OUT, **_OUTPUT, **_ASSIGN, "Choices": _BOTH, "Default": _BOTH},
    "Succeed": {**_COMMON, **_IN_OUT, **_OUTPUT},
    "Fail": {**_COMMON, "Error": _BOTH, "Cause": _BOTH, "ErrorPath": _PATH, "CausePath": _PATH},
}
REQUIRED: dict[str, tuple[str, ...]] = {
    "Task": ("Resource",),
    "Parallel": ("Branches",),
    "Choice": ("Choices",),
}
# Mutually exclusive fields: a literal and its ...Path twin, or two alternatives.
EXCLUSIVE: dict[str, tuple[tuple[str, ...], ...]] = {
    "Task": (
        ("TimeoutSeconds", "TimeoutSecondsPath"),
        ("HeartbeatSeconds", "HeartbeatSecondsPath"),
    ),
    "Map": (
        ("ItemProcessor", "Iterator"),
        ("ItemSelector", "Parameters"),
        ("MaxConcurrency", "MaxConcurrencyPath"),
        ("ToleratedFailureCount", "ToleratedFailureCountPath"),
        ("ToleratedFailurePercentage", "ToleratedFailurePercentagePath"),
    ),
    "Fail": (("Error", "ErrorPath"), ("Cause", "CausePath")),
    "Wait": (("SecondsPath", "Seconds", "TimestampPath", "Timestamp"),),
}
DISTRIBUTED_PARTS = ("ItemReader", "ItemBatcher", "ResultWriter")
DISTRIBUTED_ONLY = (
    *DISTRIBUTED_PARTS,
    "Label",
    "ToleratedFailureCount",
    "ToleratedFailureCountPath",
    "ToleratedFailurePercentage",
    "ToleratedFailurePercentagePath",
)
MACHINE = (
    "Comment",
    "QueryLanguage",
    "StartAt",
    "States",
    "TimeoutSeconds",
    "Version",
)
BRANCH = ("Comment", "StartAt", "States")
PROCESSOR = (*BRANCH, "ProcessorConfig")


def is_allowed(kind: str, name: str, language: QueryLanguage) -> bool | None:
    """Return whether a state may have a field; None if only in the other query language."""
    where = FIELDS[kind].get(name)
    if where is None:
        return False
    mine = _JSONATA if language is QueryLanguage.JSONATA else _PATH
    return True if where in (_BOTH, mine) else None


def fields_of(kind: str, language: QueryLanguage) -> tuple[str, ...]:
    """Return the fields of a state type in a query language; () for an unknown type."""
    return tuple(name for name in FIELDS.get(kind, ()) if is_allowed(kind, name, language))
