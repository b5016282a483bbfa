"""The server's own Step Functions, as a Task calls them."""

from __future__ import annotations

from typing import Any, Protocol


class Home(Protocol):
    """Calls this server's own Step Functions in this process, for nested executions."""

    def client(self, region: str) -> Any:
        """Return what takes calls as a client of botocore does."""
