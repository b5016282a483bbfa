"""Interface to this server's own AWS services (Step Functions, EventBridge) for Tasks."""

from __future__ import annotations

from typing import Any, Protocol


class Home(Protocol):
    """Calls this server's own services within the process."""

    def client(self, service: str, region: str) -> Any:
        """Return an object for a service with the methods of a botocore client."""
