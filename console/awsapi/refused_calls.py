"""Record API calls refused by signature or role in the audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from console import access
from console.db import audit, refusals
from console.db.writer import drop_broken_connection
from console.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from console.errors import ServiceError

_CODES = {
    ErrorCode.AccessDeniedException: "",
    ErrorCode.InvalidSignatureException: "wrong signature",
    ErrorCode.UnrecognizedClientException: "unknown or disabled access key",
}
"""Code -> the reason in the audit; "" for the message of the error."""
log = structlog.get_logger(__name__)


async def record_refusal(
    run: Callable[[Callable[[], None]], Awaitable[None]],
    scope: dict[str, Any],
    key_id: str,
    action: str,
    error: ServiceError,
) -> None:
    """Write a refused call to the audit trail, on a thread of ``run``, within a rate limit.

    ``key_id``: the access key that the call names.
    """
    if error.code not in _CODES:
        return
    address = str((scope.get("client") or ("an unknown address",))[0])
    reason = f"{_CODES[ErrorCode(error.code)] or error}, from {address}"
    source = key_id if error.code == ErrorCode.AccessDeniedException else address
    if not refusals.LIMIT.admit(source, None):
        return

    def write_row() -> None:
        drop_broken_connection()
        principal = access.principal_of_key(key_id)
        is_known = error.code == ErrorCode.AccessDeniedException and principal is not None
        name = principal.user.get_username() if principal is not None and is_known else ""
        actor = audit.Actor(name, key_id[:32])
        project = None if principal is None else principal.project
        refusals.record_refused_call(project, actor, action, reason)

    try:
        await run(write_row)
    except Exception as failure:  # noqa: BLE001 - the refusal itself must reach its caller
        log.warning("a refused call is not in the audit", error=str(failure))
