"""What is the token of a task?  Derived, not drawn: it is the same again after a restart."""

from __future__ import annotations

import base64
import hmac


def task_token(key: bytes, execution_arn: str, task: int) -> str:
    """Return the token of task ``task`` (id of its Scheduled event): 256 bits, URL-safe text.

    Only who knows ``key`` can make one; the token carries nothing.
    """
    digest = hmac.new(key, f"{execution_arn}\n{task}".encode(), "sha256").digest()
    return base64.urlsafe_b64encode(digest).decode()
