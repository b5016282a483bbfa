"""A rule, something it tells of, and a web address that hears it: for tests of deliveries."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from console.features.notifications import relay as outbox_relay
from console.features.notifications.store import deliveries, routing, rules
from console.models import EventRule, OutboxEvent
from tests.console.store.helpers import PASS, create, drain, start

if TYPE_CHECKING:
    from console.models import Project

REGION = "us-east-1"
SUCCEEDED = json.dumps({"source": ["aws.states"], "detail": {"status": ["SUCCEEDED"]}})


class Receiver:
    """A web address that answers what it is told to, and remembers what it got."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                receiver.got.append((dict(self.headers), body))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


def rule_to(project: Project, *addresses: str, pattern: str = SUCCEEDED, **more: Any) -> EventRule:
    """Make a rule with targets 1, 2..."""
    rule = rules.put_rule(project, REGION, "rule", pattern=pattern)
    targets = [{"Id": str(n), "Arn": address, **more} for n, address in enumerate(addresses, 1)]
    assert rules.put_targets(project, REGION, "rule", targets) == []
    return rule


def happened(project: Project) -> str:
    """Let an execution succeed; return its event's id once it is routed."""
    drain(start(create(project, PASS), name="x"))
    routing.route_events()
    return OutboxEvent.objects.get().event_id


def carry_all() -> None:
    """Carry whatever is due, in this thread."""
    for number in claim_all():
        carry(number)


def claim_all(most: int = 100) -> list[int]:
    """Claim what is due, of each target so many at most."""
    counts = {due.target: most for due in deliveries.due_targets()}
    return [number for number, _ in deliveries.claim_due(counts)]


def carry(number: int) -> None:
    """Take a delivery to its target, or to the queue for its dead letters."""
    bury = outbox_relay.relay_delivery(number)
    if bury is not None:
        bury()
