"""Published definitions are judged as those who published them say."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from tests.conformance.cases import DEFINITIONS

# What others call right or wrong and the service, by its documentation or a recording, does not.
DISAGREE = {
    "invalid-jsonata-surround-syntax-no-spaces": "published machines of AWS leave the blanks out",
    "invalid-json-surround-syntax-extra-spaces": "blanks inside the marks are JSONata's own",
    "task-with-credentials": "recorded: RoleArn is required",
    "valid-task-credentials": "recorded: RoleArn is required",
    "valid-assign.asl": "documented: a variable's name is an identifier; 'top-level' is none",
    "valid-task-intrisic-function": "Resource is a CloudFormation call, not a text",
    "documentSucceedFailTerminalState": "measured: a state name stands once in a machine",
    "valid-task-timeout-jsonata": "measured: a Resource of another service is not recognized",
    **dict.fromkeys(
        (
            "backoff-with-jitter-on-retry",
            "documentTaskInvalidArn",
            "jsonata-3",
            "jsonata-5",
            "states-array-invocation",
            "states-encoding-decoding-intrinsic-functions",
            "states-format-invocation",
            "states-json-intrinsic-functions",
            "states-jsontostring-invocation",
            "states-string-intrinsic-functions",
            "states-stringtojson-invocation",
            "task-with-parameters",
            "task-with-resultpath",
        ),
        "measured: a Resource is an ARN",
    ),
}


def load(pattern: str) -> list[dict[str, Any]]:
    """Return the entries of the files."""
    files = sorted(DEFINITIONS.glob(pattern))
    return [entry for file in files for entry in json.loads(file.read_text(encoding="utf-8"))]


def problems(entry: dict[str, Any]) -> list[engine.Diagnostic]:
    """Return what is wrong with a definition."""
    definition = entry["definition"]
    text = definition if isinstance(definition, str) else json.dumps(definition)
    return [problem for problem in engine.check(text) if problem.severity == "ERROR"]


@pytest.mark.parametrize("entry", load("labelled.json"), ids=lambda entry: entry["name"])
def test_labelled_definitions(entry: dict[str, Any]) -> None:
    """Valid ones are accepted; invalid ones are refused with the place."""
    errors = problems(entry)
    agrees = not errors if entry["expect_valid"] else bool(errors)
    assert agrees != (entry["name"].removesuffix(".json") in DISAGREE)
    assert all(error.location or error.line for error in errors)


@pytest.mark.slow
def test_published_definitions_are_read_without_a_crash() -> None:
    """Whatever is in them; and nine of ten are accepted as they are."""
    entries = [entry for entry in load("*+*.json") if "expect_valid" not in entry]
    refused = [entry["id"] for entry in entries if problems(entry)]
    assert len(entries) > 100
    assert len(refused) < len(entries) / 10
