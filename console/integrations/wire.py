"""Record an HTTP Task's request and response for TestState's inspectionData (level TRACE)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from console.integrations.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from console.integrations.outbound import HttpAnswer, SentRequest

_OURS = ("User-Agent", "Range")  # come last, as in the documentation's example


@dataclass
class Exchange:
    """A request and its response as texts, in the service model's form.

    ``reveal``: show the connection's additions to the request, and ``secrets``, their values,
    wherever they occur in request or response.
    """

    reveal: bool = False
    secrets: tuple[str, ...] = ()
    request: dict[str, str] = field(default_factory=dict)
    response: dict[str, str] = field(default_factory=dict)

    def sent(
        self, request: SentRequest, headers: Mapping[str, str], secret: dict[str, str]
    ) -> None:
        """Record a request. ``headers``: the headers of its definition and ours."""
        own = [(name, value) for name, value in headers.items() if name not in _OURS]
        added = [*secret.items()] if self.reveal else []
        ours = [(name, headers[name]) for name in _OURS if name in headers]
        self.request = {
            "protocol": urlsplit(request.url).scheme,
            "method": request.method,
            "url": request.url,
            "headers": _listed([*own, *added, *ours]),
        }
        body = request.body.decode("utf-8", "replace")
        if body:
            self.request["body"] = body

    def got(self, answer: HttpAnswer, body: str) -> None:
        """Record a response."""
        self.response = {
            "protocol": self.request["protocol"],
            "statusCode": str(answer.status),
            "statusMessage": answer.reason,
            "headers": _listed(answer.headers),
            "body": body,
        }

    def hidden(self, value: Any) -> Any:
        """Return recorded texts, or objects of them, without the secrets."""
        return value if self.reveal else redact(value, self.secrets)

    def inspection_data(self) -> dict[str, dict[str, str]]:
        """Return the inspectionData, without members that were not reached."""
        both = {"request": self.request, "response": self.response}
        return {name: value for name, value in both.items() if value}


def _listed(headers: Iterable[tuple[str, str]]) -> str:
    return f"[{', '.join(f'{name}: {value}' for name, value in headers)}]"
