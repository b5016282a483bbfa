"""Keys and signatures hold where calls come in: lines S2, S3 and S5 to S7 of the threats.

Each request is signed by botocore and goes through the edge as a server hands it over.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from console import access
from console.awsapi import asgi
from console.awsapi.waiting_calls import WAITING_CALLS
from console.config import data_folder, quotas
from console.db import signals
from console.db.audit import Actor
from console.db.writer import Change
from console.errors import ErrorCode
from console.models import Execution, Membership, Role
from console.statuses import Topic
from console.store.people import people
from console.store.tasks import activities, claim
from tests.acceptance.server import Server
from tests.console.store.helpers import ACTIVITY, WAIT, WORK, create, drain, start, types
from tests.loops import looped
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from console.models import AccessKey, Project

SIGNER = Actor("owner", "", "test")
HOST = "127.0.0.1:8083"


@pytest.fixture
def key(project: Project, django_user_model: Any) -> AccessKey:
    """An owner's access key."""
    access._principals.clear()
    user = django_user_model.objects.create_user("owner")
    Membership.objects.create(project=project, user=user, role=Role.OWNER)
    row, _ = people.new_key(user, project, SIGNER)
    return row


def request(action: str = "ListStateMachines", **params: Any) -> AWSRequest:
    """Return a call that is not signed yet."""
    return AWSRequest(
        "POST",
        f"http://{HOST}/",
        data=json.dumps(params).encode(),
        headers={
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AWSStepFunctions.{action}",
            "Host": HOST,
        },
    )


def signed(
    key_id: str, secret: str, action: str = "ListStateMachines", **params: Any
) -> AWSRequest:
    """Return a call with botocore's signature."""
    call = request(action, **params)
    SigV4Auth(Credentials(key_id, secret), "states", "us-east-1").add_auth(call)
    return call


def send(call: AWSRequest) -> Any:
    """Hand a call to the edge and return its answer; raise its error."""
    path, _, query = call.url.removeprefix(f"http://{HOST}").partition("?")
    headers = {name.lower(): [value] for name, value in call.headers.items()}
    scope = {"path": path or "/", "query_string": query.encode()}
    answer = asgi.answer_call(scope, headers, call.data, "request")
    return answer.result() if isinstance(answer, Change) else answer


@pytest.mark.slow
def test_a_key_is_good_until_it_is_disabled_or_deleted(project: Project, key: AccessKey) -> None:
    """S2: unknown, disabled, deleted and wrong are refused as AWS does; back on, it works again."""
    secret = access.secret_for(key.key_id)
    assert send(signed(key.key_id, secret))
    with raises_code(ErrorCode.InvalidSignatureException):
        send(signed(key.key_id, secret[:-1] + "?"))
    with raises_code(ErrorCode.UnrecognizedClientException):
        send(signed("AKIAMADEUP", access.secret_for("AKIAMADEUP")))
    for on in (False, True):
        people.switch_key(project, key.key_id, on=on, actor=SIGNER)
        if on:
            assert send(signed(key.key_id, secret))
        else:
            refused(key.key_id, secret)
    people.delete_key(project, key.key_id, SIGNER)
    refused(key.key_id, secret)


def refused(key_id: str, secret: str) -> None:
    """A key that may not be used is refused in one way, whatever its secret."""
    for guess in (secret, "other"):
        with raises_code(ErrorCode.UnrecognizedClientException):
            send(signed(key_id, guess))


def test_a_key_goes_with_its_owner(project: Project, key: AccessKey) -> None:
    """S2: who is no member any more, or may not log in, has no key that works."""
    key.user.is_active = False
    key.user.save()
    refused(key.key_id, access.secret_for(key.key_id))
    key.user.is_active = True
    key.user.save()
    Membership.objects.filter(user=key.user).delete()
    access._principals.clear()
    refused(key.key_id, access.secret_for(key.key_id))


def through_the_edge(call: AWSRequest) -> tuple[int, dict[str, Any]]:
    """Send a call as a server does, wait as long as it does, and return status and answer."""
    sent: list[dict[str, Any]] = []
    asked = iter([{"type": "http.request", "body": call.data}])

    async def receive() -> dict[str, Any]:
        message = next(asked, None)
        if message is None:
            await asyncio.Event().wait()  # the caller stays
        return message or {}

    async def keep(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(name.lower().encode(), str(value).encode()) for name, value in call.headers.items()]
    scope = {"path": "/", "query_string": b"", "headers": headers}
    looped(lambda: asgi.aws_application(scope, receive, keep), 30)
    return sent[0]["status"], json.loads(sent[1]["body"])


def apart(fn: Callable[[], object]) -> None:
    """Run in a thread of its own: the browser's driver may have left an event loop in this one.

    ``looped``, which runs beside, takes away Django's permission to read in such a thread.
    """

    def run() -> None:
        try:
            fn()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@pytest.mark.parametrize("how", ["removed", "disabled", "demoted"])
def test_who_waits_for_work_and_loses_the_right_gets_none(
    project: Project, key: AccessKey, django_user_model: Any, how: str
) -> None:
    """A long poll that was open at the removal ends, and takes no task with it."""
    activities.create_activity(project, "us-east-1", "work")
    machine = create(project, WORK)
    robot = people.put_member(project, "robot", Role.OPERATOR, SIGNER).user
    its, secret = people.new_key(robot, project, SIGNER)
    poll = signed(its.key_id, secret, "GetActivityTask", activityArn=ACTIVITY)
    answers: list[tuple[int, dict[str, Any]]] = []
    waiting = threading.Thread(target=lambda: answers.append(through_the_edge(poll)))
    waiting.start()
    while not signals.subscribers((Topic.ACTIVITY, ACTIVITY)):
        time.sleep(0.01)
    if how == "removed":
        people.remove_member(project, "robot", SIGNER)
    elif how == "disabled":
        people.switch_key(project, its.key_id, on=False, actor=SIGNER)
    else:
        people.put_member(project, "robot", Role.VIEWER, SIGNER)
    apart(lambda: drain(start(machine, {"secret": 1})))
    waiting.join()
    expected = "AccessDeniedException" if how == "demoted" else "UnrecognizedClientException"
    assert "taskToken" not in answers[0][1]
    assert answers[0][1]["__type"].endswith(expected)
    assert claim.take_activity_task(ACTIVITY, "another") is not None


def test_a_presigned_query_is_refused(key: AccessKey) -> None:
    """S3: only headers sign; a link that somebody passes on is no call."""
    call = request()
    credentials = Credentials(key.key_id, access.secret_for(key.key_id))
    SigV4QueryAuth(credentials, "states", "us-east-1").add_auth(call)
    assert "X-Amz-Signature" in call.url
    with raises_code(ErrorCode.UnknownOperationException, "takes no presigned requests"):
        send(call)


def test_a_replayed_start_is_the_same_execution(project: Project, key: AccessKey) -> None:
    """S5: within the window the same bytes do the same again, and a named start does it once."""
    machine = create(project, WAIT)
    secret = access.secret_for(key.key_id)
    call = signed(
        key.key_id, secret, "StartExecution", stateMachineArn=machine.arn, name="x", input="{}"
    )
    assert send(call) == send(call)
    assert Execution.objects.count() == 1


def test_a_replayed_task_answer_changes_nothing(project: Project, key: AccessKey) -> None:
    """S5: a token is closed by the first answer; the second is told so and moves nothing."""
    activities.create_activity(project, "us-east-1", "work")
    execution = start(create(project, WORK))
    drain(execution)
    token = claim.take_activity_task(ACTIVITY, "w").token
    secret = access.secret_for(key.key_id)
    call = signed(key.key_id, secret, "SendTaskSuccess", taskToken=token, output="1")
    send(call)
    drain(execution)
    before = types(execution)
    with raises_code(ErrorCode.TaskTimedOut):
        send(call)
    drain(execution)
    assert types(execution) == before


@pytest.mark.parametrize("key_id", ["", "AKIAIOSFODNN7EXAMPLE", "test"])
def test_without_a_key_of_ours_nothing_is_answered(key: AccessKey, key_id: str) -> None:
    """S6: neither an unsigned call nor the dummy keys of emulators pass."""
    call = signed(key_id, "test") if key_id else request()
    code = "UnrecognizedClientException" if key_id else "MissingAuthenticationTokenException"
    with raises_code(ErrorCode(code)):
        send(call)


def forms(secret: str, key_id: str, master: bytes) -> list[bytes]:
    """Return the ways in which a secret could lie somewhere."""
    digest = hmac.new(master, key_id.encode(), hashlib.sha256).digest()
    texts = [secret.encode(), digest, digest.hex().encode(), base64.b64encode(digest)]
    return [*texts, master, master.hex().encode(), base64.b64encode(master)]


@pytest.mark.postgres_too
def test_no_table_holds_a_secret(project: Project, key: AccessKey, tmp_path: Path) -> None:
    """S7: a dump has the key's id and, in no form, its secret or what makes it."""
    send(signed(key.key_id, access.secret_for(key.key_id)))
    path = tmp_path / "dump.json"
    call_command("dumpdata", output=str(path), verbosity=0)
    dump = path.read_bytes()
    assert key.key_id.encode() in dump
    secret = access.secret_for(key.key_id)
    for form in forms(secret, key.key_id, settings.STATEYARD_KEY_SECRET):
        assert form not in dump


@pytest.mark.slow
@pytest.mark.acceptance
def test_no_file_of_the_database_holds_a_secret(tmp_path: Path) -> None:
    """S7: nor do its bytes on the disk, journal and deleted rows among them, nor the log."""
    server = Server(tmp_path / "data", STATEYARD_DATABASE_URL="").start()
    try:
        server.client().list_state_machines()
        key_id, secret = server.keys()
        files = [*server.data.glob("stateyard.sqlite3*")]
        assert len(files) > 1  # with the journal
        content = b"".join(file.read_bytes() for file in files)
        log = server.log()
    finally:
        server.stop()
    master = (server.data / "secret").read_bytes().strip()
    assert key_id.encode() in content
    for form in (master, *forms(secret, key_id, data_folder.derive_key(master, "access-keys"))):
        assert form not in content
    assert secret not in log


def test_a_key_has_so_many_polls_at_a_time(project: Project, key: AccessKey) -> None:
    """One more is refused before anything is taken; another key is not asked to wait."""
    activities.create_activity(project, "us-east-1", "work")
    settings.STATEYARD_QUOTAS = {"waiting_calls": 1}
    quotas.forget()
    try:
        poll = signed(
            key.key_id, access.secret_for(key.key_id), "GetActivityTask", activityArn=ACTIVITY
        )
        with WAITING_CALLS.one_more("AKIAOTHER"):
            send(poll)
        with (
            WAITING_CALLS.one_more(key.key_id),
            raises_code(ErrorCode.ThrottlingException, "1 calls of this key"),
        ):
            send(poll)
    finally:
        settings.STATEYARD_QUOTAS = {}
        quotas.forget()
