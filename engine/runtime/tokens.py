"""Task tokens, derived from the execution and the task, so a repeated step has the same token."""

from __future__ import annotations

import base64
import hmac


def task_token(key: bytes, execution_arn: str, task: int) -> str:
    """Return the token of the task with this ...Scheduled event: 256 bits, URL-safe text.

    ``key``: secret; without it, no token can be computed. The token itself carries no information.
    """
    digest = hmac.digest(key, f"{execution_arn}\n{task}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode()
