"""A state speaks to a harness of Bedrock AgentCore: the service, a function, and their errors."""

from __future__ import annotations

import json
import struct
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.acceptance.aws import KEYS
from tests.acceptance.server import Server, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance

ROLE = "arn:aws:iam::123456789012:role/test"
HARNESS = "arn:aws:bedrock-agentcore:us-east-1:123456789012:harness/{}-abcdef1234"
SESSION = "session-of-at-least-thirty-three-characters"
USAGE = {"usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}}
METADATA = ("metadata", {**USAGE, "metrics": {"latencyMs": 100}})
TALK: list[tuple[str, dict[str, Any]]] = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "I look it up."}}),
    ("messageStop", {"stopReason": "tool_use"}),
    METADATA,
    ("messageStart", {"role": "user"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolResult": [{"text": "42"}]}}),
    ("messageStop", {"stopReason": "tool_result"}),
    ("messageStart", {"role": "assistant"}),
    (
        "contentBlockDelta",
        {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}},
    ),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "It is "}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "42. ä"}}),
    ("messageStop", {"stopReason": "end_turn"}),
    METADATA,
]


def framed(kind: str, name: str, payload: dict[str, Any]) -> bytes:
    """Return one message of AWS's event stream encoding."""
    texts = {f":{kind}-type": name, ":message-type": kind, ":content-type": "application/json"}
    headers = b"".join(
        struct.pack("!B", len(key))
        + key.encode()
        + struct.pack("!BH", 7, len(text))
        + text.encode()
        for key, text in texts.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


class Agents:
    """The service: a harness for each way to answer, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        agents = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                about = parse_qs(urlsplit(self.path).query)
                body = json.loads(self.rfile.read(length))
                session = self.headers["X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"]
                agents.asked.append({**body, "session": session})
                self.answer(about["harnessArn"][0])

            def answer(self, arn: str) -> None:
                if "/Busy-" in arn:
                    self.send_response(429)
                    self.send_header("x-amzn-errortype", "ThrottlingException")
                    data, kind = b'{"message": "slow down"}', "application/json"
                else:
                    self.send_response(200)
                    frames = [framed("event", name, event) for name, event in TALK]
                    if "/Breaks-" in arn:
                        failure = {"message": "the agent fell over"}
                        frames = [*frames[:3], framed("exception", "runtimeClientError", failure)]
                    data, kind = b"".join(frames), "application/vnd.amazon.eventstream"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture(scope="module")
def agents() -> Iterator[Agents]:
    """The service of harnesses."""
    service = Agents()
    yield service
    service.server.shutdown()
    service.server.server_close()


@pytest.fixture(scope="module")
def server(agents: Agents, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that has the service as its target, and functions for two harnesses."""
    data = tmp_path_factory.mktemp("harness") / "data"
    data.mkdir()
    (data / "targets.json").write_text(
        json.dumps({"bedrock-agentcore": {"endpoint_url": agents.url, **KEYS}})
    )
    (data / "functions.json").write_text(
        json.dumps(
            {
                "harness:Local": "tests.acceptance.test_harness:speak",
                "harness:Throttled": "tests.acceptance.test_harness:refuse",
            }
        )
    )
    server = Server(data).start()
    yield server
    server.stop()


class ThrottlingException(Exception):
    """What a function raises to play the service's error."""


def speak(parameters: dict[str, Any], _: Any) -> str:
    """Stand for a harness: say back what it was told."""
    said: str = parameters["Messages"][0]["Content"][0]["Text"]
    return f"You said: {said}"


def refuse(*_: Any) -> str:
    """Stand for a harness that is busy."""
    raise ThrottlingException("slow down")


def run(server: Server, name: str, **state: Any) -> dict[str, Any]:
    """Run a state that speaks to a harness, and return DescribeExecution."""
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::bedrockagentcore:invokeHarness",
        "Parameters": {
            "HarnessArn": HARNESS.format(name),
            "RuntimeSessionId": SESSION,
            "Messages": [{"Role": "user", "Content": [{"Text.$": "$.prompt"}]}],
        },
        "End": True,
        **state,
    }
    client = server.client()
    machine = client.create_state_machine(
        name=f"speaks-to-{name}",
        definition=json.dumps({"StartAt": "Speak", "States": {"Speak": task}}),
        roleArn=ROLE,
    )
    started = client.start_execution(
        stateMachineArn=machine["stateMachineArn"], input='{"prompt": "What is it?"}'
    )
    return wait_for_end(client, started["executionArn"])


def test_the_last_message_comes_back(server: Server, agents: Agents) -> None:
    """Its text alone, without tools and reasoning, and the tokens of all messages."""
    execution = run(server, "Answers")
    assert execution["status"] == "SUCCEEDED", execution
    assert json.loads(execution["output"]) == {
        "Output": {"Message": {"Role": "assistant", "Content": [{"Text": "It is 42. ä"}]}},
        "StopReason": "end_turn",
        "Usage": {"InputTokens": 10, "OutputTokens": 14, "TotalTokens": 24},
        "Metrics": {"LatencyMs": 200},
    }
    asked = agents.asked[-1]
    assert asked["session"] == SESSION
    assert asked["messages"] == [{"role": "user", "content": [{"text": "What is it?"}]}]


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("Busy", "BedrockAgentCore.ThrottlingException", "slow down"),
        ("Breaks", "BedrockAgentCore.RuntimeClientErrorException", "the agent fell over"),
        ("Throttled", "BedrockAgentCore.ThrottlingException", "slow down"),
    ],
)
def test_errors_have_the_names_of_the_service(
    server: Server, name: str, error: str, words: str
) -> None:
    """Those of the answer, of its stream, and of a function that stands for the harness."""
    execution = run(server, name)
    assert (execution["status"], execution["error"]) == ("FAILED", error)
    assert words in execution["cause"]


def test_a_function_stands_for_a_harness(server: Server) -> None:
    """It gets the parameters, and its text becomes the message."""
    execution = run(server, "Local")
    output = json.loads(execution["output"])
    assert output["Output"]["Message"]["Content"] == [{"Text": "You said: What is it?"}]
    assert output["StopReason"] == "end_turn"
    assert set(output["Usage"].values()) == {0}


def test_a_missing_parameter_is_named(server: Server) -> None:
    """Before anything is called."""
    execution = run(server, "Missing", Parameters={"HarnessArn": HARNESS.format("Missing")})
    assert execution["error"] == "States.Runtime"
    assert "'RuntimeSessionId' is required but was missing" in execution["cause"]
