"""Invoke a harness of Bedrock AgentCore: an agent that answers in the shape of Converse.

Step Functions returns only the text of the agent's last message, and the sum of the tokens of all
messages. Source: "Invoke Amazon Bedrock AgentCore harness with Step Functions" of the Developer
Guide.

The harness is called at the target of ``bedrock-agentcore``, or it is a function: the entry
``harness:NAME`` of ``functions.json``. The function gets the task's parameters, and returns a text
or a result in the shape of Converse.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import engine
from console.integrations import aws, function, targets
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.config.function_options import FoundFunction
    from console.integrations.names import Operation

MOST_S = 900
"""AWS: how long such a task may take."""
_PREFIX = "BedrockAgentCore"
_NAME = re.compile(r"arn:[^:]*:bedrock-agentcore:[^:]*:\d{12}:harness/(\w+)(?:-[a-zA-Z0-9]{10})?")
_USAGE = ("inputTokens", "outputTokens", "totalTokens")


def harness_name(arn: str) -> str:
    """Return the name of a harness from its ARN, without AWS's suffix; "" for other ARNs."""
    match = _NAME.fullmatch(arn)
    return match[1] if match else ""


def call(task: TaskAttempt) -> Outcome:
    """Invoke the harness: its registered function, or Bedrock AgentCore at the target."""
    request = aws.build_request(task)
    if isinstance(request, Failed):
        return request
    arn = str(request.sent.get("harnessArn") or "")
    registered = targets.find_harness(harness_name(arn), task.machine)
    if registered is not None:
        return _call_function(registered, arn, task)
    return aws.request_outcome(task, request, lambda: _converse(task, request), _outcome)


def _outcome(task: TaskAttempt, operation: Operation, answer: dict[str, Any]) -> Succeeded:
    del task, operation  # the answer has its shape already
    return Succeeded(engine.dumps(answer))


# -- a registered function -------------------------------------------------------------------------


def _call_function(registration: FoundFunction, arn: str, task: TaskAttempt) -> Outcome:
    begun = time.monotonic()
    seconds = min(task.timeout_s or MOST_S, MOST_S)
    outcome = function.call_target(
        registration.target,
        harness_name(arn),
        replace(task, resource=arn, timeout_s=seconds),
        registration.options,
    )
    if isinstance(outcome, Failed):
        return replace(outcome, error=f"{_PREFIX}.{outcome.error or 'BedrockAgentCoreException'}")
    assert isinstance(outcome, Succeeded)  # noqa: S101 - for the type checker: nothing is waited for
    answer = engine.loads(outcome.output)
    latency_ms = int((time.monotonic() - begun) * 1000)
    if isinstance(answer, dict) and "Output" in answer:
        result_text = engine.dumps(_result([], {}, latency_ms) | answer)
        return Succeeded(result_text, record=outcome.record)
    text = answer if isinstance(answer, str) else outcome.output
    return Succeeded(engine.dumps(_result([text], {}, latency_ms)), record=outcome.record)


# -- the service -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Conversation:
    """The state of a streamed answer: text, tokens, stop reason.

    ``texts``: block number -> text, of the message that is being written. ``last``: the
    texts of the agent's last message. ``usage``: tokens of all messages.
    """

    role: str = ""
    texts: dict[int, str] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)
    stop_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    latency_ms: int = 0

    def hear(self, name: str, event: dict[str, Any]) -> None:
        """Process one event; events of tools and of reasoning add nothing."""
        if name == "messageStart":
            self.role, self.texts = event["role"], {}
        elif name == "contentBlockDelta" and event["delta"].get("text"):
            number = event["contentBlockIndex"]
            text = self.texts.get(number, "") + event["delta"]["text"]
            self.texts[number] = text[: engine.MAX_BYTES + 1]  # longer ones are refused later
        elif name == "messageStop":
            self.stop_reason = event["stopReason"]
            if self.role == "assistant":
                self.last = [self.texts[number] for number in sorted(self.texts)]
        elif name == "metadata":
            for token in _USAGE:
                self.usage[token] = self.usage.get(token, 0) + event["usage"][token]
            self.latency_ms += event["metrics"]["latencyMs"]


def _converse(task: TaskAttempt, request: aws.Request) -> dict[str, Any]:
    """Invoke the harness and return its conversation; raise botocore's errors."""
    answer = aws.send_request(task, request)
    stream: Iterable[dict[str, dict[str, Any]]] = answer["stream"]
    conversation = Conversation()
    deadline = time.monotonic() + MOST_S
    for events in stream:
        for name, event in events.items():
            conversation.hear(name, event)
        if time.monotonic() > deadline:
            msg = f"The harness did not answer within {MOST_S} seconds"
            raise aws.TaskTimeoutError(msg)
    return _result(
        conversation.last, conversation.usage, conversation.latency_ms, conversation.stop_reason
    )


def _result(
    texts: list[str], usage: dict[str, int], latency_ms: int, stop_reason: str = "end_turn"
) -> dict[str, Any]:
    return {
        "Metrics": {"LatencyMs": latency_ms},
        "Output": {
            "Message": {"Content": [{"Text": text} for text in texts], "Role": "assistant"},
        },
        "StopReason": stop_reason,
        "Usage": {token[0].upper() + token[1:]: usage.get(token, 0) for token in _USAGE},
    }
