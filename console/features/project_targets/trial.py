"""Test a target: make one call within a few seconds, and report the outcome in a sentence.

A call has its own thread, so that a silent or slow endpoint holds the page's request for
``LIMIT_S`` at most. The thread ends with its call soon after, because ``outbound`` limits the whole
call and the DNS queries. ``AT_ONCE`` limits the calls of a process, and ``AT_ONCE_OF_PROJECT``
those of a project.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from concurrent.futures import Future
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError

from console.config.function_options import OWN, FunctionOptions
from console.db.project_settings import open_setting
from console.features.project_targets import entries
from console.features.project_targets.entries import TargetKind
from console.functions import checks
from console.integrations import connections, outbound, targets
from console.integrations.redaction import redact

if TYPE_CHECKING:
    from console.db.project_settings import StoredSetting

    Outcome = tuple[bool, str]

LIMIT_S = 5.0
AT_ONCE = 8
AT_ONCE_OF_PROJECT = 2
_MOST = 300
_LARGEST = 100_000
"""Bytes of an answer."""
_IDENTITY = b"Action=GetCallerIdentity&Version=2011-06-15"
_ARN = re.compile(r"<Arn>\s*([^<]+?)\s*</Arn>")
_CODE = re.compile(r"<Code>\s*([^<]+?)\s*</Code>")
_running: Counter[int] = Counter()
"""Project -> its calls under way."""
_lock = threading.Lock()


def try_target(row: StoredSetting) -> Outcome:
    """Call a target; return whether it works, and a sentence on the outcome."""
    problem = entries.find_problem(row)
    if problem:
        return False, problem
    busy = _begin(row.project_id)
    if busy:
        return False, busy
    future: Future[Outcome] = Future()
    threading.Thread(
        target=_run_call, args=(row, future), name="test of a target", daemon=True
    ).start()
    try:
        return future.result(LIMIT_S)
    except TimeoutError:
        return False, f"{_place(row)} did not answer within {LIMIT_S:g} seconds."


def _begin(project_id: int) -> str:
    """Count a call; return why it is refused, "" if it may begin."""
    with _lock:
        if _running[project_id] >= AT_ONCE_OF_PROJECT:
            return f"{AT_ONCE_OF_PROJECT} tests of this project are running: try again in a moment."
        if _running.total() >= AT_ONCE:
            return f"{AT_ONCE} tests are running on this server: try again in a moment."
        _running[project_id] += 1
        return ""


def _run_call(row: StoredSetting, future: Future[Outcome]) -> None:
    """Call a target; the call's place is free before the outcome is returned."""
    outcome: Outcome = False, ""
    problem: Exception | None = None
    try:
        outcome = _call(row)
    except Exception as error:  # noqa: BLE001 - raised where it is waited for
        problem = error
    with _lock:
        _running[row.project_id] -= 1
        if not _running[row.project_id]:
            del _running[row.project_id]
    if problem is None:
        future.set_result(outcome)
    else:
        future.set_exception(problem)


def _call(row: StoredSetting) -> Outcome:
    if row.kind == TargetKind.SERVICE:
        return _try_service(row)
    if row.kind == TargetKind.ADDRESS:
        return _try_address(row.name)
    if row.kind == TargetKind.CONNECTION:
        return _try_connection(row)
    if "folder" in row.value:
        return _try_callable(row)
    return _try_address(row.value["handler"])


def _place(row: StoredSetting) -> str:
    """Return a text with the destination of a call."""
    if row.kind == TargetKind.SERVICE:
        return str(row.value.get("endpoint_url") or "AWS")
    if row.kind == TargetKind.CONNECTION:
        return f"The authorization endpoint of {row.name}"
    parts = urlsplit(row.name if row.kind == TargetKind.ADDRESS else row.value["handler"])
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else row.name


def _try_service(row: StoredSetting) -> Outcome:
    """Call ``sts:GetCallerIdentity`` with the key of a target, at its endpoint."""
    secrets = tuple(open_setting(row).values())
    place = _place(row)
    begun = time.monotonic()
    try:
        request = _identity_request(row)
        headers = dict(request.headers.items())
        answer = outbound.send_request(
            "POST",
            str(request.url),
            LIMIT_S,
            most=_LARGEST,
            headers=headers,
            content=_IDENTITY,
        )
        text = answer.body.decode(errors="replace")
    except outbound.CallTimeout:
        return False, f"{place} did not answer within {LIMIT_S:g} seconds."
    except (BotoCoreError, outbound.CallError, ValueError) as error:
        return False, _shorten(f"{place} cannot be called: {error}.", secrets)
    arn, code = _ARN.search(text), _CODE.search(text)
    if answer.is_success and arn is not None:
        words = f"{place} answered sts:GetCallerIdentity in {_elapsed_ms(begun)} ms: {arn[1]}."
        return True, _shorten(words, secrets)
    if code is not None and answer.is_error and answer.status != HTTPStatus.NOT_FOUND:
        return False, _shorten(f"{place} refuses sts:GetCallerIdentity: {code[1]}.", secrets)
    status = answer.status
    return True, f"{place} answers, but not to sts:GetCallerIdentity (status {status})."


def _identity_request(row: StoredSetting) -> AWSRequest:
    """Return the signed request; botocore's client determines endpoint and region."""
    entry = entries.build_service(row)
    client = targets.make_client("sts", entry, limit_s=LIMIT_S)
    address = client.meta.endpoint_url.rstrip("/") + "/"
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    request = AWSRequest("POST", address, data=_IDENTITY, headers=headers)
    credentials = Credentials(entry["access_key_id"], entry["secret_access_key"])
    SigV4Auth(credentials, "sts", client.meta.region_name).add_auth(request)
    return request


def _try_address(url: str) -> Outcome:
    """Send GET without credentials; any answer is a success."""
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}"
    begun = time.monotonic()
    try:
        status = outbound.send_request("GET", url, LIMIT_S).status
        return True, f"{place} answered in {_elapsed_ms(begun)} ms with status {status}."
    except outbound.CallTimeout:
        return False, f"{place} did not answer within {LIMIT_S:g} seconds."
    except (outbound.CallError, ValueError) as error:
        return False, _shorten(f"{place} cannot be called: {error}.")


def _try_connection(row: StoredSetting) -> Outcome:
    """Request an OAuth token; other types cannot be tested."""
    entry = entries.build_connection(row.value, open_setting(row))
    connection = connections.HttpConnection(row.name, entry)
    if row.value["type"] != "OAUTH_CLIENT_CREDENTIALS":
        return True, f"The connection {row.name} can be used; it has no address of its own to call."
    try:
        connection.authorize()
    except connections.UnusableConnectionError as error:
        return False, _shorten(f"{error}.", connection.secrets)
    return True, f"The authorization endpoint of {row.name} issued a token."


def _try_callable(row: StoredSetting) -> Outcome:
    """Find a callable without running anything."""
    options = FunctionOptions(process=OWN, folder=row.value["folder"])
    problem = checks.find_problem(row.value["handler"], options)
    if problem:
        return False, _shorten(f"{row.name} would fail: {problem}.")
    return True, f"{row.value['handler']} is in its folder and can be called."


def _elapsed_ms(begun: float) -> int:
    return round((time.monotonic() - begun) * 1000)


def _shorten(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return an outcome in one line, without secrets."""
    return " ".join(redact(text, secrets).split()).replace("..", ".")[:_MOST]
