"""The log says what happened and where, and holds no data of users."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import threading
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from django.contrib.auth.models import User
from structlog.contextvars import bound_contextvars

import engine
from console import access
from console.awsapi.asgi import _LoggedError, answer_call
from console.awsapi.operations import executions
from console.config import logging_setup
from console.db.writer import Change
from console.errors import ServiceError
from console.models import AuditEntry, Execution, Membership, Project
from console.store.executions import step
from console.store.machines import machines
from console.web.people import login_views
from console.worker import task_delivery
from console.worker.stepping import Stepping
from tests.console.store.helpers import PASS, ROLE, create, function, one, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client

CANARY = "canary-9f2c"
NASTY = "a\r\nERROR forged\x1b[31m\u202e\x85\u2028b"


@pytest.fixture(params=["text", "json"])
def lines(request: pytest.FixtureRequest) -> Iterator[Callable[[], list[str]]]:
    """Write the log to memory, in each form; return what reads it."""
    stream = io.StringIO()
    before = structlog.get_config()
    config = logging_setup.configure(request.param)
    config["handlers"]["stderr"]["stream"] = stream
    root = logging.getLogger()
    handlers = list(root.handlers)
    logging.config.dictConfig(config)
    for handler in root.handlers:  # a thread of an earlier test may still write logs of functions
        handler.addFilter(lambda record: not record.name.endswith("function_log_writer"))
    yield lambda: stream.getvalue().splitlines()
    structlog.configure(**before)
    root.handlers[:] = handlers


def parsed(line: str) -> dict[str, Any]:
    """Return a JSON line as an object."""
    record: dict[str, Any] = json.loads(line)
    return record


def fail(event: Any, context: object) -> Any:
    """A function that fails with what it was given, and so does what it called."""
    del context
    try:
        {}[str(event)]
    except KeyError as error:
        raise ValueError(f"cannot work on {event}") from error


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the function above."""
    settings.STATEYARD_FUNCTIONS = {"fail": f"{__name__}:fail"}


def headers(target: str, **more: str) -> dict[str, list[str]]:
    """Return the headers of a call of the API."""
    values = {
        "host": "localhost",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"AWSStepFunctions.{target}",
        **more,
    }
    return {name: [value] for name, value in values.items()}


def call(target: str, body: dict[str, Any], **more: str) -> Any:
    """Call the API as anybody."""
    scope = {"path": "/", "query_string": b""}
    answer = answer_call(scope, headers(target, **more), json.dumps(body).encode(), "request-1")
    return answer.result() if isinstance(answer, Change) else answer


@pytest.mark.parametrize("lines", ["json"], indirect=True)
def test_a_line_is_an_object(lines: Callable[[], list[str]]) -> None:
    """With moment, level, logger and what is known around it."""
    with bound_contextvars(request_id="r-1", execution="arn:x"):
        structlog.get_logger("console.test").info("it went well", count=3)
        logging.getLogger("library").warning("it said %s", "so")
    own, other = map(parsed, lines())
    assert own.pop("timestamp").endswith("Z")
    assert own == {
        "event": "it went well",
        "level": "info",
        "logger": "console.test",
        "count": 3,
        "request_id": "r-1",
        "execution": "arn:x",
    }
    assert (other["event"], other["level"], other["request_id"]) == ("it said so", "warning", "r-1")


def test_what_steers_a_terminal_is_written_out(lines: Callable[[], list[str]]) -> None:
    """One event stays one line, whatever is in it: CR, LF, ESC, reversed writing."""
    log = structlog.get_logger("console.test")
    log.warning(NASTY, name=NASTY, many=[NASTY])
    logging.getLogger("library").warning("%s", NASTY.replace("\r\n", "\r"))
    log_lines = lines()
    assert len(log_lines) == 2
    assert not [character for character in "".join(log_lines) if not character.isprintable()]
    assert "forged" in log_lines[0]


def test_an_exception_tells_its_places_only(lines: Callable[[], list[str]]) -> None:
    """Types, files, lines and functions of it and its causes; no message and no variable."""
    try:
        fail(CANARY, None)
    except ValueError:
        structlog.get_logger("console.test").exception("it failed")
        logging.getLogger("library").exception("that failed\nfuture: %s", CANARY)
    text = "\n".join(lines())
    assert CANARY not in text
    assert text.count("ValueError") == text.count("KeyError") == 2
    assert text.count(" in fail") == 4
    assert "test_journal.py:" in text


def test_what_is_named_like_a_payload_is_hidden(lines: Callable[[], list[str]]) -> None:
    """Who adds such a line by mistake gives nothing away."""
    log = structlog.get_logger("console.test")
    log.warning("told too much", **dict.fromkeys(("input", "Output", "taskToken", "cause"), CANARY))
    assert CANARY not in lines()[0]
    assert lines()[0].count(logging_setup.HIDDEN.split()[0]) == 4


def test_an_unknown_form_is_refused() -> None:
    """With the name of the variable and what it takes."""
    with pytest.raises(ValueError, match="STATEYARD_LOG: got 'xml', wanted one of: text, json"):
        logging_setup.configure("xml")


# -- the canary: through API, pages, worker and functions ------------------------------------------


def provoke_api(settings: Any, execution: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls fail that carry the canary, as clients and as ourselves got it wrong."""
    settings.STATEYARD_ACCEPT_ANY_KEY = True
    owner(execution.project)
    access.forget_principals()
    with pytest.raises(ServiceError):
        call("StartExecution", {"stateMachineArn": "arn:x", "input": CANARY})

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(executions, "stop_execution", broken)
    with pytest.raises(_LoggedError):
        call(
            "StopExecution",
            {"executionArn": execution.arn, "cause": CANARY, "error": CANARY},
            authorization=f"AWS4-HMAC-SHA256 {CANARY}",
        )


def owner(project: Project) -> User:
    """Return the project's owner, who is anybody without keys."""
    user, _ = User.objects.get_or_create(username="owner")
    Membership.objects.get_or_create(project=project, user=user, defaults={"role": "owner"})
    return user


def provoke_worker(project: Project, monkeypatch: pytest.MonkeyPatch) -> Execution:
    """Let a function fail, and then the engine at a step."""
    machine = create(project, one("T", **function("fail")), "fails")
    execution = start(machine, {CANARY: CANARY})
    while step.step_execution(execution.pk):
        pass
    task_delivery.deliver_task(execution.pk, 3)

    def broken(*_: object, **__: object) -> None:
        raise engine.EngineBug(CANARY)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "advance", broken)
        Stepping(threading.Event(), lambda: None).work(execution.pk)
    return execution


def provoke_pages(client: Client, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Let a page fail that was asked with the canary in path, query, form, header and cookie."""

    def broken(*_: object, **__: object) -> None:
        raise LookupError(CANARY)

    client.raise_request_exception = False
    client.cookies["theme"] = CANARY
    monkeypatch.setattr(login_views, "render", broken)
    answer = client.post(
        f"/login/{CANARY}/?a={CANARY}",
        {"password": CANARY},
        headers={"x-canary": CANARY, "user-agent": CANARY},
    )
    client.get("/nothing/here/", headers={"host": f"{CANARY}.example"})
    return str(answer.status_code), answer["X-Request-Id"]


def test_the_canary_is_in_no_line(
    project: Project,
    client: Client,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    lines: Callable[[], list[str]],
) -> None:
    """Input, output, cause, header, key, cookie, path and password: 0 hits, all failures told."""
    execution = provoke_worker(project, monkeypatch)
    status, request_id = provoke_pages(client, monkeypatch)
    provoke_api(settings, execution, monkeypatch)
    text = "\n".join(lines())
    assert CANARY not in text
    assert status == "500"
    for told in ("a step failed", "a page failed", "an AWS call failed", "RuntimeError"):
        assert told in text, told
    assert text.count(execution.arn) >= 2
    assert request_id in text
    assert "request-1" in text
    assert "login/<str:token>/" in text
    rows = AuditEntry.objects.values_list("action", "target", "reason", "actor", "request_id")
    assert CANARY not in json.dumps(list(rows))


def test_the_audit_row_of_a_page_names_its_request(project: Project, client: Client) -> None:
    """So that row and lines can be laid side by side."""
    client.force_login(owner(project))
    machine = machines.create_machine(
        project, "us-east-1", name="m", definition=json.dumps(PASS), role_arn=ROLE
    )
    answer = client.post(f"/machines/{machine.name}/start/", {"input": "{}"})
    row = AuditEntry.objects.get(action="StartExecution")
    assert answer.status_code == 302
    assert row.request_id == answer["X-Request-Id"]
