"""The server's own services, as a Task calls them."""

from __future__ import annotations

from typing import Any, Protocol


class Home(Protocol):
    """Calls this server's own services in this process."""

    def client(self, service: str, region: str) -> Any:
        """Return what takes calls as a client of botocore's for a service does."""
