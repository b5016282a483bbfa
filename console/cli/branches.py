"""Create, open and delete branches: copies of a project for one git branch, on the same server.

The server's own HTTP API takes JSON calls signed with SigV4 (service ``stateyard``). The
connection's access key names the parent project.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from botocore.exceptions import BotoCoreError

from console import arns
from console.cli.connection import Connection, ConnectionRefused

_SERVICE = "stateyard"
_TIMEOUT_S = 120.0
_BUSY = (502, 503, 504)
_ATTEMPTS = 4
_LOOK_S = 1.0
_PATIENCE_S = 120.0
_CONFLICT = "ConflictException"


class CallRefused(ConnectionRefused):
    """A server refused a call, or did not answer. ``code``: its error code, "" without one."""

    def __init__(self, message: str, code: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.code, self.status = code, status


@dataclass(frozen=True, slots=True)
class BranchAccess:
    """A branch with an access key. ``described``: the server's answer."""

    described: dict[str, Any]
    connection: Connection

    @property
    def name(self) -> str:
        """The branch's name, as in git."""
        return str(self.described["branch"])

    @property
    def summary(self) -> str:
        """Return a one-line summary of the branch."""
        until = datetime.fromtimestamp(self.described["expiresAt"], UTC)
        return (
            f"branch {self.name} of {self.described['parent']['name']}: project"
            f" {self.described['project']}, account {self.described['accountId']},"
            f" until {until:%Y-%m-%d %H:%M} UTC"
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return environment variables that point every AWS client to the branch."""
        region = self.connection.session.region_name
        return {
            "AWS_ENDPOINT_URL": self.connection.web_address,
            "AWS_ACCESS_KEY_ID": self.described["accessKeyId"],
            "AWS_SECRET_ACCESS_KEY": self.described["secretAccessKey"],
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_ACCOUNT_ID": self.described["accountId"],
            "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
        }


def put_branch(connection: Connection, name: str, ttl: str) -> BranchAccess:
    """Create a branch or extend its life; wait while an older one of the name is deleted.

    Raise ConnectionRefused.
    """
    body = {"branch": name} | ({"ttl": ttl} if ttl else {})
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _with_access(connection, call(connection, "POST", "/api/branches", body))
        except CallRefused as refusal:
            if refusal.code != _CONFLICT or time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_S)


def open_branch(connection: Connection, name: str) -> BranchAccess:
    """Return an existing branch; raise ConnectionRefused."""
    described = call(connection, "POST", "/api/branches/key", {"branch": name})
    return _with_access(connection, described)


def _with_access(connection: Connection, described: dict[str, Any]) -> BranchAccess:
    import boto3

    from console.cli.account import Account

    session = boto3.Session(
        aws_access_key_id=described["accessKeyId"],
        aws_secret_access_key=described["secretAccessKey"],
        region_name=connection.session.region_name,
    )
    region = str(session.region_name)
    account = Account(described["accountId"], region, arns.partition_of(region))
    branch = Connection(session, connection.web_address, aws=False, account_of_key=account)
    return BranchAccess(described, branch)


def call(
    connection: Connection,
    method: str,
    path: str,
    body: dict[str, Any] | None = None,
    *,
    needs: str = "branches",
) -> dict[str, Any]:
    """Make a signed call of the server's own API; raise CallRefused, ConnectionRefused.

    ``needs``: the feature that the server must have, for these messages. A call that a busy server
    refuses is repeated; every call of this API may be made twice without harm.
    """
    if connection.aws:
        raise ConnectionRefused(f"--aws: got an endpoint of AWS, which has no {needs}")
    text = "" if body is None else json.dumps(body, ensure_ascii=False)
    data = text.encode("utf-8", "surrogatepass")
    for attempt in range(1, _ATTEMPTS + 1):
        status, answer = _send(connection, method, path, data)
        if status not in _BUSY or attempt == _ATTEMPTS:
            break
        time.sleep(_LOOK_S * attempt)
    if not isinstance(answer, dict):
        url = f"{connection.web_address}{path}"
        raise CallRefused(f"{url}: got status {status}, wanted a Stateyard with {needs}")
    if status >= HTTPStatus.BAD_REQUEST:
        message = str(answer.get("message", f"status {status}"))
        raise CallRefused(message, str(answer.get("__type", "")), status)
    return answer


def call_for_text(connection: Connection, method: str, path: str, text: str = "") -> str:
    """Make a signed call that answers with a text; raise CallRefused, ConnectionRefused."""
    status, content = _exchange(connection, method, path, text.encode())
    printed = content.decode("utf-8", "replace")
    if status < HTTPStatus.BAD_REQUEST:
        return printed
    answer = _parsed(content)
    if not isinstance(answer, dict) or "message" not in answer:
        url = f"{connection.web_address}{path}"
        raise CallRefused(f"{url}: {status} {printed.strip()[:200]}", status=status)
    raise CallRefused(str(answer["message"]), status=status)


def _send(connection: Connection, method: str, path: str, data: bytes) -> tuple[int, Any]:
    """Send a request; return status and JSON of the answer; None without JSON."""
    status, content = _exchange(connection, method, path, data)
    return status, _parsed(content)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _exchange(connection: Connection, method: str, path: str, data: bytes) -> tuple[int, bytes]:
    """Send a signed request; return status and content of the answer."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.httpsession import URLLib3Session
    from botocore.utils import get_environ_proxies

    url = f"{connection.web_address}{path}"
    request = AWSRequest(method, url, data=data, headers={"Content-Type": "application/json"})
    try:
        credentials = connection.session.get_credentials()
    except BotoCoreError as error:
        raise ConnectionRefused(str(error)) from None
    if credentials is None:
        raise ConnectionRefused("got no access key, wanted that of the parent project")
    SigV4Auth(credentials, _SERVICE, connection.session.region_name).add_auth(request)
    sender = URLLib3Session(
        verify=connection.session._session.get_config_variable("ca_bundle") or True,  # noqa: SLF001 - as boto3's clients
        proxies=get_environ_proxies(url),
        timeout=_TIMEOUT_S,
    )
    try:
        answer = sender.send(request.prepare())
    except BotoCoreError as error:
        words = str(error)  # most of botocore's name the address
        raise CallRefused(words if url in words else f"{url}: {words}") from None
    finally:
        sender.close()
    return answer.status_code, answer.content
