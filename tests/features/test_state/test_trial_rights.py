"""TestState makes calls only for callers with the right, and exposes no connection's value."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import pytest

from console.errors import ErrorCode
from console.integrations.redaction import redact
from console.models import AuditEntry, Role
from tests.console.store.helpers import function
from tests.features.test_state.test_trials import http, tried
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Try = Callable[..., dict[str, Any]]

__all__ = ["tried"]  # the fixture
CALLS: list[Any] = []
MOCK = {"result": '{"n": 1}', "fieldValidationMode": "NONE"}


def note(event: Any, context: Any) -> Any:
    """A function that tells that it was called."""
    del context
    CALLS.append(event)
    return event


@pytest.fixture
def called(settings: Any) -> list[Any]:
    """Return what the registered function was called with."""
    settings.STATEYARD_FUNCTIONS = {"note": f"{__name__}:note"}
    CALLS.clear()
    return CALLS


TASKS: dict[str, dict[str, Any]] = {
    "lambda": function("note", End=True),
    "invoke": {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": "note", "Payload": {}},
        "End": True,
    },
    "sdk": {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:s3:deleteBucket",
        "Parameters": {"Bucket": "precious"},
        "End": True,
    },
    "http": http("http://127.0.0.1:1/x"),
    "activity": {
        "Type": "Task",
        "Resource": "arn:aws:states:us-east-1:123456789012:activity:work",
        "End": True,
    },
    "map": {
        "Type": "Map",
        "ItemProcessor": {"StartAt": "T", "States": {"T": function("note", End=True)}},
        "End": True,
    },
    "parallel": {
        "Type": "Parallel",
        "Branches": [{"StartAt": "T", "States": {"T": function("note", End=True)}}],
        "End": True,
    },
}


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_an_operator_lets_nothing_be_called(
    tried: Try, called: list[Any], kind: str, role: str
) -> None:
    """Not a function, not a service, not a web address, not within a Map or Parallel."""
    with raises_code(ErrorCode.AccessDeniedException, match="states:TestUnmockedTask"):
        tried(TASKS[kind], role)
    assert called == []


@pytest.mark.parametrize("kind", TASKS)
def test_an_operator_tests_with_a_mock(tried: Try, called: list[Any], kind: str) -> None:
    """Nothing is called then, whatever the state is."""
    mock = MOCK if kind not in ("map", "parallel") else {"result": "[1]"}
    answer = tried(TASKS[kind], Role.OPERATOR, mock=mock, input="[1]" if kind == "map" else "{}")
    assert answer["status"] == "SUCCEEDED"
    assert called == []


def test_an_editor_lets_a_task_be_called(tried: Try, called: list[Any]) -> None:
    """Who may make a machine and start it may do the same by a test."""
    assert tried(TASKS["lambda"], Role.EDITOR, input='{"a": 1}')["status"] == "SUCCEEDED"
    assert called == [{"a": 1}]


def test_a_call_that_is_made_is_in_the_audit(tried: Try, called: list[Any], web: str) -> None:
    """With who let it be made and whose secrets were shown; a mock and a Pass call nothing."""
    tried({"Type": "Pass", "End": True}, Role.EDITOR)
    tried(TASKS["lambda"], Role.EDITOR, mock=MOCK)
    with raises_code(ErrorCode.AccessDeniedException, match="states:RevealSecrets"):
        tried(http(web), Role.EDITOR, revealSecrets=True)
    assert not AuditEntry.objects.exists()
    tried(TASKS["lambda"], Role.EDITOR)
    tried(http(web), inspectionLevel="TRACE", revealSecrets=True)
    rows = AuditEntry.objects.order_by("pk")
    assert [(row.action, row.target) for row in rows] == [
        ("TestUnmockedTask", TASKS["lambda"]["Resource"]),
        ("TestUnmockedTask", "arn:aws:states:::http:invoke"),
        ("RevealSecrets", "arn:aws:states:::http:invoke"),
    ]
    assert {(row.actor, row.key_id, row.request_id) for row in rows} == {
        ("somebody", "AKIATEST", "id")
    }
    assert {row.reason for row in rows} == {"state StateName"}


def test_an_operator_tests_what_calls_nothing(tried: Try) -> None:
    """A Pass, a Choice, a Wait need no mock."""
    state = {"Type": "Pass", "Result": 1, "End": True}
    assert tried(state, Role.OPERATOR)["output"] == "1"


# -- values of connections -------------------------------------------------------------------------

SECRET = 'k3y "of/the" shöp & co+<1>'  # every character that is written in several ways

TOKEN = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9." + "".join(
    chr(ord("A") + number * number % 26) + str(number) for number in range(400)
)
"""As long as the tokens that issuers of OAuth give out, with the header that all of them have."""


def echoes(secret: str) -> dict[str, str]:
    """Return how a server may send a value back."""
    data = secret.encode()
    return {
        "plain": secret,
        "quoted": quote(secret, safe=""),
        "lower": quote(secret, safe="").lower(),
        "path": quote(secret),
        "form": quote_plus(secret),
        "json": json.dumps(secret),
        "unicode": json.dumps(secret, ensure_ascii=False),
        "twice": json.dumps(json.dumps({"in": secret})),
        "slashes": json.dumps(secret).replace("/", "\\/"),
        "html": secret.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;"),
        "base64": base64.b64encode(data).decode(),
        "basic": "Basic " + base64.b64encode(b"ana:" + data).decode(),
        "url64": base64.urlsafe_b64encode(data).decode().rstrip("="),
        "escaped64": quote(base64.b64encode(b"ana:" + data).decode(), safe=""),
    }


class _Echo(BaseHTTPRequestHandler):
    """Sends back what a request brought, in every form."""

    protocol_version = "HTTP/1.1"
    secret = SECRET

    def do_POST(self) -> None:
        """Answer with the headers of the request and the forms of the secret; 418 for /tea."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = json.dumps({"headers": dict(self.headers), **echoes(self.secret)}).encode()
        self.send_response(418 if self.path.startswith("/tea") else 200)
        self.send_header("X-Seen", str(self.headers.get("Authorization", "")))
        self.send_header("X-Form", quote(self.secret, safe=""))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def echo(settings: Any) -> Iterator[str]:
    """An address that echoes, with connections of both kinds."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    address = f"http://127.0.0.1:{served.server_port}"
    basic = {"type": "BASIC", "username": "ana", "password": SECRET}
    bearer = {"name": "Authorization", "value": "Bearer opaque-token-4711"}
    connections = {"shop": basic, "bearer": bearer, "broken": {"name": "X", "value": "two\nlines"}}
    settings.STATEYARD_TARGETS = {"http": {"endpoints": [address], "connections": connections}}
    yield address
    served.shutdown()
    served.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["ok", "tea"])
@pytest.mark.parametrize("level", ["INFO", "DEBUG", "TRACE"])
def test_a_connection_s_value_comes_back_in_no_form(
    tried: Try, echo: str, path: str, level: str
) -> None:
    """In no body, header, output, cause or stage; an owner who reveals sees it all."""
    task = http(f"{echo}/{path}")
    answer = tried(task, Role.EDITOR, inspectionLevel=level)
    assert answer["status"] == ("SUCCEEDED" if path == "ok" else "FAILED")
    text = json.dumps(answer, ensure_ascii=False)
    for name, form in echoes(SECRET).items():
        for written in (form, json.dumps(form)[1:-1], json.dumps(json.dumps(form))[3:-3]):
            assert written not in text, name
    assert "k3y" not in text
    assert "(masked)" in text
    if path == "ok":
        assert json.loads(answer["output"])["StatusCode"] == 200
    shown = json.dumps(tried(task, Role.OWNER, inspectionLevel=level, revealSecrets=True))
    assert "k3y" in shown


def test_the_token_within_a_header_is_masked_too(tried: Try, echo: str) -> None:
    """A server that cuts off "Bearer" sends back what is secret about the value."""
    task = http(f"{echo}/ok")
    arn = "arn:aws:events:us-east-1:123456789012:connection/bearer/1"
    task["Parameters"]["InvocationConfig"]["ConnectionArn"] = arn
    task["ResultSelector"] = {"seen.$": "$.Headers['x-seen'][0]"}
    text = json.dumps(tried(task, Role.EDITOR, inspectionLevel="TRACE"))
    assert "opaque-token" not in text


def test_a_value_that_cannot_be_sent_is_in_no_cause(tried: Try, echo: str) -> None:
    """The library names a header that it refuses; the cause of the state does not."""
    task = http(f"{echo}/ok")
    arn = "arn:aws:events:us-east-1:123456789012:connection/broken/1"
    task["Parameters"]["InvocationConfig"]["ConnectionArn"] = arn
    answer = tried(task, Role.OWNER, inspectionLevel="TRACE", revealSecrets=True)
    assert answer["error"] == "States.Http.Socket"
    assert "lines" not in answer["cause"]


@pytest.mark.parametrize("name", echoes(SECRET))
def test_each_form_of_a_value_is_found(name: str) -> None:
    """Also in the middle of a text, which stays as it is."""
    values = (SECRET, f"ana:{SECRET}")
    text = f"before {echoes(SECRET)[name]} after"
    masked = redact(text, values)
    assert "(masked)" in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert "3y" not in masked.replace("(masked)", "")


@pytest.mark.parametrize("name", sorted(echoes(TOKEN).keys() - {"lower"}))
def test_each_form_of_a_long_token_is_found(name: str) -> None:
    """By its ends: another token of the same issuer, which begins alike, stays beside it."""
    other = f"{TOKEN[:40]}another"
    text = f"{other} before {echoes(TOKEN)[name]} after {other}"
    masked = redact(text, (TOKEN, "short-secret"))
    assert masked.startswith(f"{other} before ")
    assert masked.endswith(f" after {other}")
    assert "(masked)" in masked
    assert len(masked) < 2 * len(other) + 60


@pytest.mark.slow
def test_a_long_token_is_made_a_pattern_quickly() -> None:
    """EKS has a token of 1,600 characters for each call: no second of the processor for it."""
    begun = time.process_time()
    for number in range(10):
        assert redact(f"a{TOKEN}{number}b", (f"{TOKEN}{number}",)) == "a(masked)b"
    assert time.process_time() - begun < 5


def test_what_is_no_secret_stays() -> None:
    """Nothing is configured, or a value is too short to be told from any text."""
    assert redact("a text", ()) == "a text"
    assert redact("abc abc", ("abc",)) == "abc abc"
    assert redact({"a": "hush hush", "b": "c"}, ("hush",)) == {"a": "(masked) (masked)", "b": "c"}
    assert redact('{"n": 12345}', ("12345",)) == '"(masked)"'
    assert json.loads(redact('{"n": "12345"}', ("12345",))) == {"n": "(masked)"}


@pytest.mark.slow
def test_a_long_answer_is_searched_quickly() -> None:
    """A server cannot make it slow with what nearly is a form of the value."""
    nearly = (f"{TOKEN[:30]}x" * 10_000, f"{TOKEN[:30]}%6" * 10_000, TOKEN[:-1] * 200)
    texts = ("\\" * 300_000, "%6" * 150_000, "k3y" * 100_000, "&#0" * 100_000)
    for text in (*texts, *nearly):
        begun = time.process_time()
        redact(text, (SECRET, TOKEN))
        assert time.process_time() - begun < 5
