"""Which fields may a state of each type have, in each query language?

The one table to touch when ASL gets a new field. ``P``: JSONPath only, ``A``: JSONata only, ``B``:
both.
"""

from __future__ import annotations

from engine.language.model import QueryLanguage

TYPES = ("Task", "Wait", "Pass", "Succeed", "Fail", "Choice", "Parallel", "Map")

_COMMON = {"Type": "B", "Comment": "B", "QueryLanguage": "B"}
_GOES_ON = {"Next": "B", "End": "B"}
_IN_OUT = {"InputPath": "P", "OutputPath": "P"}
_RESULT = {"ResultPath": "P"}
_OUTPUT = {"Output": "A"}
_ASSIGN = {"Assign": "B"}
_RECOVERY = {"Retry": "B", "Catch": "B"}
_WORK = {**_IN_OUT, **_RESULT, **_OUTPUT, **_ASSIGN, **_RECOVERY, "ResultSelector": "P"}

FIELDS: dict[str, dict[str, str]] = {
    "Task": {
        **_COMMON,
        **_GOES_ON,
        **_WORK,
        "Parameters": "P",
        "Arguments": "A",
        "Resource": "B",
        "TimeoutSeconds": "B",
        "HeartbeatSeconds": "B",
        "TimeoutSecondsPath": "P",
        "HeartbeatSecondsPath": "P",
        "Credentials": "B",
    },
    "Parallel": {
        **_COMMON,
        **_GOES_ON,
        **_WORK,
        "Parameters": "P",
        "Arguments": "A",
        "Branches": "B",
    },
    "Map": {
        **_COMMON,
        **_GOES_ON,
        **_WORK,
        "Parameters": "P",
        "ItemProcessor": "B",
        "Iterator": "B",
        "ItemSelector": "B",
        "ItemReader": "B",
        "ItemBatcher": "B",
        "ResultWriter": "B",
        "Label": "B",
        "Items": "A",
        "ItemsPath": "P",
        "MaxConcurrency": "B",
        "MaxConcurrencyPath": "P",
        "ToleratedFailureCount": "B",
        "ToleratedFailureCountPath": "P",
        "ToleratedFailurePercentage": "B",
        "ToleratedFailurePercentagePath": "P",
    },
    "Pass": {
        **_COMMON,
        **_GOES_ON,
        **_IN_OUT,
        **_RESULT,
        **_OUTPUT,
        **_ASSIGN,
        "Parameters": "P",
        "Result": "P",
    },
    "Wait": {
        **_COMMON,
        **_GOES_ON,
        **_IN_OUT,
        **_OUTPUT,
        **_ASSIGN,
        "Seconds": "B",
        "Timestamp": "B",
        "SecondsPath": "P",
        "TimestampPath": "P",
    },
    "Choice": {**_COMMON, **_IN_OUT, **_OUTPUT, **_ASSIGN, "Choices": "B", "Default": "B"},
    "Succeed": {**_COMMON, **_IN_OUT, **_OUTPUT},
    "Fail": {**_COMMON, "Error": "B", "Cause": "B", "ErrorPath": "P", "CausePath": "P"},
}
REQUIRED: dict[str, tuple[str, ...]] = {
    "Task": ("Resource",),
    "Parallel": ("Branches",),
    "Choice": ("Choices",),
}
# A literal and its twin, or two ways to say one thing.
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
    "Wait": (("Seconds", "SecondsPath", "Timestamp", "TimestampPath"),),
}
DISTRIBUTED_ONLY = (
    "ItemReader",
    "ItemBatcher",
    "ResultWriter",
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
BRANCH = ("Comment", "QueryLanguage", "StartAt", "States")
PROCESSOR = (*BRANCH, "ProcessorConfig")


def allowed(kind: str, name: str, language: QueryLanguage) -> bool | None:
    """Tell whether a state may have a field; None if only in the other query language."""
    where = FIELDS[kind].get(name)
    if where is None:
        return False
    mine = "A" if language is QueryLanguage.JSONATA else "P"
    return True if where in ("B", mine) else None
