"""Validate the form *Test a state*, run the test, and show its outcome.

The page runs the API's TestState (``console.features.test_state``). Masked values stay masked in
the prefilled form and in the outcome.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import engine
from console.errors import ServiceError
from console.features.data_flow.stages import VisitDataFlow, flow_of_test
from console.features.test_state.state import try_state
from console.masking import masked_execution
from console.masking.mask import OPEN, Mask
from console.web.core import formatting
from console.web.core.scope import actor_of

if TYPE_CHECKING:
    from console.models import Execution, Project
    from console.web.core.scope import Scope
    from engine import Graph, Node

LEVELS = ("INFO", "DEBUG", "TRACE")
MODES = ("STRICT", "PRESENT", "NONE")
STATUS = {
    "SUCCEEDED": formatting.StatusLabel("succeeded", "Succeeded"),
    "FAILED": formatting.StatusLabel("failed", "Failed"),
    "RETRIABLE": formatting.StatusLabel("running", "Would be retried"),
    "CAUGHT_ERROR": formatting.StatusLabel("caught", "Caught error"),
}
_JSON = ("input", "variables", "result", "context")
_MOST = 262_144
_MOST_ERROR, _MOST_CAUSE = 256, 32_768
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_FACTS = {
    "retryIndex": "Retrier",
    "retryBackoffIntervalSeconds": "Seconds until the retry",
    "catchIndex": "Catcher",
    "maxConcurrency": "Concurrency",
    "toleratedFailureCount": "Failures tolerated",
    "toleratedFailurePercentage": "Percentage of failures tolerated",
}
_WIRE = (
    ("protocol", "Protocol"),
    ("method", "Method"),
    ("url", "URL"),
    ("statusCode", "Status"),
    ("statusMessage", "Message"),
    ("headers", "Headers"),
)


class FieldMistake(Exception):
    """A field is invalid, with the reason."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(message)
        self.field = where


@dataclass(frozen=True, slots=True)
class TestRequest:
    """The form as typed. ``mock``: "", "result" or "error"."""

    state: str = ""
    input: str = "{}"
    variables: str = ""
    level: str = "DEBUG"
    mock: str = ""
    result: str = ""
    mode: str = "STRICT"
    error: str = ""
    cause: str = ""
    context: str = ""
    retries: str = ""
    failures: str = ""
    data: str = ""
    reveal: bool = False

    def params(self, definition: str, role: str) -> dict[str, Any]:
        """Return the parameters of TestState; raise ``FieldMistake``."""
        self._check()
        parameters: dict[str, Any] = {
            "definition": definition,
            "stateName": self.state,
            "roleArn": role,
            "input": self.input if self.input.strip() else "{}",
            "inspectionLevel": self.level if self.level in LEVELS else "INFO",
            "variables": self.variables.strip(),
            "context": self.context.strip(),
            "mock": self._mock(),
            "stateConfiguration": self._configuration(),
            "revealSecrets": self.reveal,
        }
        return {name: value for name, value in parameters.items() if value}

    def _check(self) -> None:
        for name in _JSON:
            text = getattr(self, name).strip()
            if text and (name != "result" or self.mock == "result"):
                _check_json(name, text)
        for name, most in (("error", _MOST_ERROR), ("cause", _MOST_CAUSE), ("data", _MOST)):
            size = len(getattr(self, name))
            if size > most:
                raise FieldMistake(
                    name, f"{size:,} characters are too many. At most {most:,} are accepted."
                )

    def _mock(self) -> dict[str, Any] | None:
        if self.mock == "result":
            mode = self.mode if self.mode in MODES else "STRICT"
            return {"result": self.result.strip() or "{}", "fieldValidationMode": mode}
        if self.mock == "error":
            error_output = {"error": self.error.strip(), "cause": self.cause}
            return {"errorOutput": {name: text for name, text in error_output.items() if text}}
        return None

    def _configuration(self) -> dict[str, Any]:
        counts: dict[str, Any] = {
            "retrierRetryCount": _count("retries", self.retries),
            "mapIterationFailureCount": _count("failures", self.failures),
            "mapItemReaderData": self.data or None,
        }
        return {name: value for name, value in counts.items() if value is not None}


def _check_json(name: str, text: str) -> None:
    """Raise ``FieldMistake`` unless a text is JSON or, if required, an object."""
    try:
        value = engine.loads(text)
    except engine.JsonTextError as error:
        place = f" at line {error.line}, column {error.column}" if error.line else ""
        reason = str(error).removesuffix(place)
        raise FieldMistake(name, f"This is not JSON: {reason}{place}.") from None
    if name in ("variables", "context") and not isinstance(value, dict):
        raise FieldMistake(name, "This JSON is not an object.")


def _count(name: str, text: str) -> int | None:
    text = text.strip()
    if text and not _NUMBER.fullmatch(text):
        raise FieldMistake(name, f"“{text}” is not a whole number of 0 or more.")
    return int(text) if text else None


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """A request or a response of an HTTP Task."""

    title: str
    pairs: tuple[tuple[str, str], ...]
    body: formatting.PayloadView | None


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """The outcome of a test. ``answer``: TestState's, masked."""

    answer: dict[str, Any] = field(repr=False)
    node: Node
    status: formatting.StatusLabel
    output: formatting.PayloadView | None
    cause: formatting.Cause | None
    flow: VisitDataFlow | None
    facts: tuple[tuple[str, Any], ...]
    wires: tuple[HttpMessage, ...]


def run_test(scope: Scope, params: dict[str, Any], node: Node, mask: Mask) -> TestOutcome:
    """Test a state as the API does; return the outcome; raise ``ServiceError``."""
    try:
        answer = try_state(scope.principal, scope.region, params, actor_of(scope))
    except ServiceError as error:
        error.message = _with_masked_values(mask, params).words(error.message)
        raise
    return _test_outcome(_masked_answer(answer, _with_masked_values(mask, params, answer)), node)


def mask_of(project: Project, origin: Execution | None) -> Mask:
    """Return the mask of the outcome. ``origin``: the execution whose input is used."""
    if origin is not None:
        return masked_execution.masked_execution(origin).mask
    return Mask(masked_execution.places_of(project.masked)) if project.masked else OPEN


def _with_masked_values(mask: Mask, *sources: dict[str, Any]) -> Mask:
    """Extend a mask by the values of masked fields, for other places."""
    if not mask.places:
        return mask
    values: set[str] = set()
    for payloads in sources:
        for text in _payload_texts(payloads):
            mask.payload(text, values)
    return replace(mask, values=mask.values | values)


def _payload_texts(value: dict[str, Any]) -> list[str]:
    """Return the texts in parameters or an answer, without the definition."""
    texts = [text for name, text in value.items() if isinstance(text, str) and name != "definition"]
    objects = (member for member in value.values() if isinstance(member, dict))
    return texts + [text for member in objects for text in _payload_texts(member)]


def _masked_answer(answer: dict[str, Any], mask: Mask) -> dict[str, Any]:
    """Return an answer with masked values."""

    def masked_value(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {inner: masked_value(inner, member) for inner, member in value.items()}
        is_plain = name in ("status", "nextState")
        return mask.payload(value) if isinstance(value, str) and not is_plain else value

    return {name: masked_value(name, value) for name, value in answer.items()}


def _test_outcome(answer: dict[str, Any], node: Node) -> TestOutcome:
    data = answer.get("inspectionData")
    output = answer.get("output")
    details = {**(data or {}), **(data or {}).get("errorDetails", {})}
    return TestOutcome(
        answer=answer,
        node=node,
        status=STATUS[answer["status"]],
        output=None if output is None else formatting.payload_view(output),
        cause=formatting.cause_of(answer.get("cause")),
        flow=None if data is None else flow_of_test(node, data, output),
        facts=tuple((word, details[key]) for key, word in _FACTS.items() if key in details),
        wires=tuple(
            _http_message(name, data[name]) for name in ("request", "response") if name in data
        )
        if data
        else (),
    )


def _http_message(name: str, exchange: dict[str, str]) -> HttpMessage:
    body = exchange.get("body")
    return HttpMessage(
        f"HTTP {name}",
        tuple((word, exchange[key]) for key, word in _WIRE if key in exchange),
        None if body is None else formatting.payload_view(body),
    )


# -- the states there are -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateChoices:
    """States to select from. ``label``: the surrounding state, "" at the top."""

    label: str
    nodes: tuple[Node, ...]


def state_choices(graph: Graph) -> list[StateChoices]:
    """Return all states, outer states before the states inside a Parallel or Map."""
    choices = []
    for group in graph.groups:
        nodes = tuple(node for node in graph.nodes if node.group == group.id)
        choices.append(StateChoices(_label(graph, group), nodes))
    return sorted(choices, key=lambda group: bool(group.label))


def _label(graph: Graph, group: engine.StateGroup) -> str:
    if not group.owner:
        return ""
    owner = graph.by_id[group.owner]
    branch = f", branch {group.index + 1}" if owner.type == "Parallel" else ""
    return f"In {formatting.visible_text(owner.name)}{branch}"


def sample_result(node: Node) -> str:
    """Return the initial mocked result: [] for a Map, an array for each branch."""
    if node.type == "Parallel":
        count = len(json.loads(node.text).get("Branches", ()))
        return json.dumps([{}] * count)
    return "[]" if node.type == "Map" else "{}"
