"""Encode and check the nextToken of a list.

A token says where the last page ended. It is signed, not encrypted: a client can read the position
but cannot change it. The signature covers action, project, region and the other parameters, so a
token of a query is invalid for any other query. A token is valid for a day.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings

from console.errors import ErrorCode, InvalidToken, ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from console.awsapi.operations.call import Call

Row = TypeVar("Row")
_DAY_S = 24 * 3600
_SEAL = 16
DEFAULT, MOST = 100, 1000


def page_size(params: dict[str, Any]) -> int:
    """Return the number of items on a page: ``maxResults``; 0 or missing means 100."""
    return params.get("maxResults") or DEFAULT


def seal_position(call: Call, params: dict[str, Any], position: Any) -> str:
    """Return the token for a position; only a repetition of the same query can use it."""
    body = json.dumps([int(time.time()), position], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_seal(call, params, body) + body).decode()


def open_position(call: Call, params: dict[str, Any]) -> Any:
    """Return the position in the request's nextToken, None without one; raise ``InvalidToken``."""
    text = params.get("nextToken")
    if text is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii"))
    except (ValueError, UnicodeEncodeError):
        raise invalid_token() from None
    if base64.urlsafe_b64encode(raw).decode() != text:  # the decoder skips foreign characters
        raise invalid_token()
    seal, body = raw[:_SEAL], raw[_SEAL:]
    if not hmac.compare_digest(seal, _seal(call, params, body)):
        raise invalid_token()
    issued_at, where = json.loads(body)
    if time.time() - issued_at > _DAY_S:
        raise invalid_token()
    return where


def seal_next(call: Call, position: Any) -> str:
    """Return a position as a ``NextToken``, which Step Functions spells ``nextToken``."""
    return seal_position(call, _without_next(call), position)


def open_next(call: Call) -> Any:
    """Return the position in the request's NextToken, None without one.

    Raise ``InvalidNextToken`` for an invalid one.
    """
    bound = _without_next(call) | {"nextToken": call.params.get("NextToken")}
    try:
        return open_position(call, bound)
    except InvalidToken as error:
        raise ServiceError(ErrorCode.InvalidNextToken, error.message) from None


def _without_next(call: Call) -> dict[str, Any]:
    return {name: value for name, value in call.params.items() if name != "NextToken"}


def page_answer(
    call: Call,
    member: str,
    rows: Sequence[Row],
    item: Callable[[Row], dict[str, Any]],
    place: Callable[[Row], Any],
) -> dict[str, Any]:
    """Return a page in AWS's form: the items under ``member``, and a token if more items follow.

    ``rows``: the rows of the page, and one row more if another page follows. ``place``: returns the
    position to store in the token, from the last row of the page.
    """
    limit = page_size(call.params)
    answer: dict[str, Any] = {member: [item(row) for row in rows[:limit]]}
    if len(rows) > limit:
        answer["nextToken"] = seal_position(call, call.params, place(rows[limit - 1]))
    return answer


def _seal(call: Call, params: dict[str, Any], body: bytes) -> bytes:
    query = {
        name: value for name, value in params.items() if name not in ("nextToken", "maxResults")
    }
    whose = [call.action, call.project.pk, call.region]
    bound = json.dumps([*whose, query], sort_keys=True).encode() + body
    return hmac.new(settings.STATEYARD_PAGING_KEY, bound, hashlib.sha256).digest()[:_SEAL]


def invalid_token() -> InvalidToken:
    """Return the error for a token that is malformed, forged, expired or of another query."""
    return InvalidToken("Invalid Token: 'Invalid token'")
