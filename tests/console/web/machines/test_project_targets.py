"""Tasks of two projects go to their own targets, and secrets in addresses stay hidden."""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.awsapi import services
from console.db.audit import Actor
from console.features.notifications.store import rules
from console.models import AuditEntry, Delivery, Execution, HistoryEvent, Membership, Project
from console.store.people import people
from console.store.tasks import activities
from tests.console.store.helpers import REGION, create, ended, function, one, start
from tests.console.web.helpers import page, text
from tests.features.notifications.relay import carry_all, happened, rule_to
from tests.security.test_rights import send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from console.worker import Embedded

CONNECTION = "arn:aws:events:us-east-1:123456789012:connection/shop/1"
SEEN: list[tuple[str, str]] = []


class _Web(BaseHTTPRequestHandler):
    """Remembers the key of each request; 410 for /gone, with the address in it, /echo tells it."""

    def do_POST(self) -> None:
        """Answer {}."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        SEEN.append((self.path, str(self.headers.get("X-Key"))))
        gone = self.path.startswith("/gone")
        data = f"gone: {self.path}".encode() if gone else b"{}"
        if self.path == "/echo":
            data = json.dumps({"headers": dict(self.headers)}).encode()
        self.send_response(410 if gone else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Return the address of a server."""
    SEEN.clear()
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()


def other_project() -> Project:
    """Make another project."""
    return Project.objects.create(name="other", account_id="999999999999")


def billing(address: str, path: str = "/pay") -> dict[str, Any]:
    """Return a machine that calls with the connection ``shop``."""
    parameters = {
        "Method": "POST",
        "ApiEndpoint": f"{address}{path}",
        "InvocationConfig": {"ConnectionArn": CONNECTION},
    }
    return one("Pay", Type="Task", Resource="arn:aws:states:::http:invoke", Parameters=parameters)


def http(address: str, key: str) -> dict[str, Any]:
    """Return what targets.json says of HTTP tasks."""
    return {"endpoints": [address], "connections": {"shop": {"name": "X-Key", "value": key}}}


@pytest.mark.parametrize("where", ["machine", "project"])
def test_a_machine_of_the_same_name_gets_nothing_of_another_project_s(
    project: Project, worker: Embedded, address: str, settings: Any, where: str
) -> None:
    """`billing` of the one calls with its connection; `billing` of the other is refused."""
    del worker
    own = {"http": http(address, "of default")}
    said = {"machines": {"billing": own}} if where == "machine" else {"projects": {"default": own}}
    settings.STATEYARD_TARGETS = said
    mine = ended(start(create(project, billing(address), "billing")))
    theirs = ended(start(create(other_project(), billing(address), "billing")))
    assert mine.status == "SUCCEEDED"
    assert SEEN == [("/pay", "of default")]
    missing = "Events.ConnectionResource.ResourceNotFound"
    assert (theirs.status, theirs.error) == ("FAILED", missing)
    assert "connection" in str(theirs.cause)


def test_each_project_calls_with_its_own_connection(
    project: Project, worker: Embedded, address: str, settings: Any
) -> None:
    """Also where there is a general one."""
    del worker
    settings.STATEYARD_TARGETS = {
        "http": http(address, "general"),
        "projects": {"other": {"http": http(address, "of other")}},
    }
    for where in (project, other_project()):
        assert ended(start(create(where, billing(address), "billing"))).status == "SUCCEEDED"
    assert [key for _, key in SEEN] == ["general", "of other"]


def test_a_key_that_an_endpoint_tells_again_is_stored_nowhere(
    project: Project, worker: Embedded, address: str, settings: Any
) -> None:
    """Viewers read results, histories and logs, and may export them."""
    del worker
    settings.STATEYARD_TARGETS = {"http": http(address, "hush-hush-key")}
    execution = ended(start(create(project, billing(address, "/echo"), "billing")))
    assert SEEN == [("/echo", "hush-hush-key")]
    assert "(masked)" in str(execution.output)
    texts = [*HistoryEvent.objects.values_list("details", flat=True), execution.output]
    assert not [text for text in texts if "hush" in str(text)]


def say(event: Any, context: Any) -> str:
    """Answer as a registered callable."""
    del event, context
    return "said"


def test_an_activity_is_worked_for_its_own_project_only(
    project: Project, worker: Embedded, settings: Any
) -> None:
    """A callable of one project leaves the tasks of another's activity to its own workers."""
    settings.STATEYARD_FUNCTIONS = {
        "projects": {"other": {"activity:work": f"{__name__}:say", "f": f"{__name__}:say"}}
    }
    other = other_project()
    for where in (project, other):
        activities.create_activity(where, REGION, "work")
    arns = [f"arn:aws:states:us-east-1:{n.account_id}:activity:work" for n in (project, other)]
    waiting, worked = (
        start(create(where, one("A", Type="Task", Resource=arn)))
        for where, arn in zip((project, other), arns, strict=True)
    )
    assert ended(worked).output == '"said"'
    assert Execution.objects.get(pk=waiting.pk).status == "RUNNING"
    called = {"StartAt": "F", "States": {"F": function("f", End=True)}}
    assert ended(start(create(other, called, "calls"))).output == '"said"'
    refused = ended(start(create(project, called, "calls")))
    assert refused.error == "Lambda.ResourceNotFoundException"


# -- addresses -------------------------------------------------------------------------------------

QUERY = "token=s3cr3t-value"


def test_the_query_of_a_webhook_is_the_editors(
    project: Project,
    signed_in: Callable[[str], Any],
    address: str,
    settings: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No page, answer, error, log or audit row tells others what it asks for."""
    caplog.set_level(logging.DEBUG)
    settings.STATEYARD_TARGETS = {"http": {"endpoints": [address, "http://127.0.0.1:9"]}}
    hooks = [f"{address}/gone?{QUERY}", f"http://127.0.0.1:9/x?{QUERY}", f"{address}/in?{QUERY}"]
    rule_to(project, *hooks)
    happened(project)
    carry_all()
    Delivery.objects.update(status="dead")
    assert [path for path, _ in SEEN if QUERY in path]  # it is sent, of course
    for role in ("viewer", "operator", "editor"):
        client = signed_in(role)
        for place in ("/notifications/", "/schedules/", "/rules/rule/", "/audit/", "/targets/"):
            shown = text(client.get(place))
            told = "s3cr3t" in shown
            assert told == (role == "editor" and place == "/rules/rule/"), (role, place)
    assert not [row for row in Delivery.objects.all() if "s3cr3t" in row.last_error]
    assert "s3cr3t" not in repr(list(AuditEntry.objects.values()))
    assert "s3cr3t" not in caplog.text


@pytest.mark.parametrize(
    ("role", "whole"), [("viewer", False), ("operator", False), ("editor", True)]
)
def test_list_targets_tells_editors_the_whole_address(
    project: Project, django_user_model: Any, role: str, whole: bool
) -> None:
    """Who may put a target gets back what was put."""
    access._principals.clear()
    rules.put_rule(project, REGION, "rule", schedule="rate(1 day)")
    address = f"https://example.com/hook?{QUERY}"
    headers = {"HttpParameters": {"HeaderParameters": {"X-Key": "s3cr3t-header"}}}
    rules.put_targets(project, REGION, "rule", [{"Id": "1", "Arn": address, **headers}])
    user = django_user_model.objects.create_user(role)
    Membership.objects.create(project=project, user=user, role=role)
    key, _ = people.new_key(user, project, Actor("owner", "", "test"))
    answer = send(services.EVENTS, "ListTargetsByRule", key.key_id, Rule="rule")
    (told,) = answer["Targets"]
    assert told["Id"] == "1"
    assert told["Arn"] == (address if whole else "https://example.com/hook?(masked)")
    assert ("s3cr3t" in json.dumps(answer)) == whole


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
def test_list_targets_tells_everybody_an_arn(
    project: Project, django_user_model: Any, role: str
) -> None:
    """Also where its name looks like a key, as the names that CDK makes."""
    access._principals.clear()
    rules.put_rule(project, REGION, "rule", schedule="rate(1 day)")
    queue = "arn:aws:sqs:us-east-1:123456789012:DeadLetters4F3A21C0kQz9"
    target = {"Id": "1", "Arn": queue, "DeadLetterConfig": {"Arn": queue}}
    rules.put_targets(project, REGION, "rule", [target])
    user = django_user_model.objects.create_user(role)
    Membership.objects.create(project=project, user=user, role=role)
    key, _ = people.new_key(user, project, Actor("owner", "", "test"))
    answer = send(services.EVENTS, "ListTargetsByRule", key.key_id, Rule="rule")
    assert answer["Targets"] == [target]


def test_a_function_s_address_is_not_in_a_history(
    project: Project,
    worker: Embedded,
    signed_in: Callable[[str], Any],
    address: str,
    settings: Any,
) -> None:
    """Nor on a page, whether the endpoint answers with an error or nobody answers."""
    del worker
    settings.STATEYARD_FUNCTIONS = {
        "gone": f"{address}/gone?{QUERY}",
        "nobody": f"http://ana:s3cr3t-pw@127.0.0.1:9/x?{QUERY}",
    }
    viewer = signed_in("viewer")
    for name in ("gone", "nobody"):
        machine = create(project, {"StartAt": "F", "States": {"F": function(name, End=True)}}, name)
        execution = ended(start(machine, name="x"))
        assert execution.status == "FAILED"
        assert "s3cr3t" not in str(execution.cause)
        for place in ("", "events/", "export.json"):
            answer = viewer.get(page(execution, place))
            whole = b"".join(answer.streaming_content) if answer.streaming else answer.content
            assert b"s3cr3t" not in whole
        assert "s3cr3t" not in text(viewer.get(f"/machines/{name}/calls/"))
    events = HistoryEvent.objects.values_list("details", flat=True)
    assert not [event for event in events if "s3cr3t" in event]
    assert "127.0.0.1:9/x" in text(viewer.get("/targets/"))
    assert "s3cr3t" not in text(viewer.get("/targets/"))


def test_the_page_of_targets_shows_nothing_of_another_project(
    project: Project, signed_in: Callable[[str], Any], settings: Any
) -> None:
    """A section is its project's own, also to look at."""
    settings.STATEYARD_TARGETS = {
        "s3": {"endpoint_url": "http://general:1"},
        "machines": {"billing": {"sqs": {"endpoint_url": "http://of-default:1"}}},
        "projects": {
            "default": {"sns": {"endpoint_url": "http://mine:1"}},
            "other": {
                "s3": {"endpoint_url": "http://theirs:1"},
                "machines": {"pay": {"sqs": {"endpoint_url": "http://theirs:2"}}},
            },
        },
    }
    settings.STATEYARD_FUNCTIONS = {"f": "m:f", "projects": {"other": {"theirs": "m:theirs"}}}
    viewer = signed_in("viewer")
    shown = text(viewer.get("/targets/"))
    for words in ("http://general:1", "http://of-default:1", "http://mine:1", "m:f"):
        assert words in shown
    assert "theirs" not in shown
    Membership.objects.update(project=other_project())
    shown = text(viewer.get("/targets/"))
    for words in ("http://theirs:1", "http://theirs:2", "m:theirs", "m:f"):
        assert words in shown
    for words in ("http://general:1", "http://of-default:1", "http://mine:1"):
        assert words not in shown
