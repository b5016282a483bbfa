"""Send notifications: by web request, e-mail, Lambda function or AWS service.

Destinations must be configured by the operator: web addresses under ``"http": {"endpoints":
[...]}`` of ``targets.json``, AWS services by their entry there, e-mail by ``STATEYARD_MAIL``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import dataclass, field
from smtplib import SMTPException
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from django.conf import settings
from django.core.mail import EmailMessage

from console.events import addresses
from console.features.notifications import notice_text
from console.integrations import invoke, outbound, targets, web, web_parameters
from console.integrations.outcome import Failed, TaskAttempt
from console.integrations.redaction import without_url_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SIGNATURE = "X-Stateyard-Signature"
EVENT_ID = "X-Stateyard-Event-Id"
_LIMIT_S = 15.0
_TRANSIENT = (401, 407, 408, 409, 425, 429)  # as EventBridge retries them, and every 5xx
_SERVER_ERROR = 500
_GONE = 400
_ATTRIBUTE = 1_000


class Undelivered(Exception):
    """A delivery failed; ``final``: a retry would not help."""

    def __init__(self, problem: str, *, final: bool = False) -> None:
        super().__init__(problem)
        self.final = final


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to send. ``event``: the whole event; ``body``: the part for the target.

    ``secret``: signs web requests; ``settings``: the target's EventBridge settings; ``project``:
    the rule's project, whose entries of ``targets.json`` apply. ``further``: further facts by name,
    for texts that people read.
    """

    event_id: str
    event: str
    body: str
    address: str
    region: str
    secret: str
    project: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    further: Mapping[str, str] = field(default_factory=dict)


def target_secret(rule_arn: str, target_id: str) -> str:
    """Return the secret that signs a target's web requests: derived, never stored."""
    subject = f"webhook {rule_arn} {target_id}".encode()
    return hmac.new(settings.STATEYARD_KEY_SECRET, subject, hashlib.sha256).hexdigest()


def sign_body(secret: str, moment_s: int, body: str) -> str:
    """Return the signature header of a body with its time: HMAC-SHA256 of ``t.body``."""
    signed = hmac.new(secret.encode(), f"{moment_s}.{body}".encode(), hashlib.sha256)
    return f"t={moment_s},v1={signed.hexdigest()}"


def send_notice(notice: Notice) -> None:
    """Send a notice; raise ``Undelivered`` unless it was accepted."""
    kind = addresses.address_kind(notice.address)
    if kind in _WEB_BODIES:
        post_body(notice, _WEB_BODIES[kind](notice.event, notice.body, notice.further))
    elif kind == "email":
        subject = notice_text.subject_of(notice.event)
        text = notice_text.mail_text(notice.event, notice.body, notice.further)
        send_mail(notice, subject, text)
    elif kind == "lambda":
        _invoke(notice)
    else:
        _call(kind, notice)


# -- the web ---------------------------------------------------------------------------------------


_WEB_BODIES: dict[str, Callable[[str, str, Mapping[str, str]], str]] = {
    "webhook": lambda _event, body, _known: body,
    "slack": notice_text.slack_message,
    "teams": notice_text.teams_card,
}
"""Kind of address -> function that makes the posted body of the event, its JSON and other facts."""


def post_body(notice: Notice, body: str) -> None:
    """Post a body to the address of a notice; raise ``Undelivered``."""
    url = addresses.web_address(notice.address)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Stateyard",
        EVENT_ID: notice.event_id,
        SIGNATURE: sign_body(notice.secret, int(time.time()), body),
    }
    try:
        status = web.post_request(url, body.encode(), headers, _LIMIT_S, _whose(notice))
    except web_parameters.BadRequestError as error:
        raise Undelivered(without_url_secrets(str(error), notice.address), final=True) from None
    except (outbound.CallError, ValueError) as error:
        problem = without_url_secrets(f"{type(error).__name__}: {error}", notice.address)
        raise Undelivered(problem) from None
    if not outbound.is_success(status):
        final = status < _SERVER_ERROR and status not in _TRANSIENT
        raise Undelivered(f"The address answered {status}", final=final)


def _whose(notice: Notice) -> targets.MachineKey:
    """Return the key of the settings that apply: the project of the notice."""
    return targets.MachineKey(notice.project)


# -- e-mail ----------------------------------------------------------------------------------------


def send_mail(notice: Notice, subject: str, text: str) -> None:
    """Send a mail to the address of a notice; raise ``Undelivered``."""
    if not settings.STATEYARD_MAIL:
        raise Undelivered("No mail server is configured: set STATEYARD_MAIL", final=True)
    message = EmailMessage(
        subject=subject,
        body=text,
        to=[notice.address.removeprefix("mailto:")],
        headers={"Message-ID": f"<{notice.event_id}@stateyard>", EVENT_ID: notice.event_id},
    )
    try:
        message.send()
    except (OSError, SMTPException) as error:
        raise Undelivered(f"{type(error).__name__}: {error}") from None


# -- AWS services ----------------------------------------------------------------------------------


def _call(kind: str, notice: Notice) -> None:
    _call_client(lambda: _CALLS[kind](_client(kind, notice), notice))


def _client(service: str, notice: Notice) -> Any:
    return targets.service_client(service, None, notice.region, _whose(notice))


def _call_client(call: Callable[[], None]) -> None:
    """Call a method of an AWS client; raise ``Undelivered`` for its errors."""
    try:
        call()
    except (targets.NoTargetError, ParamValidationError) as error:
        raise Undelivered(str(error), final=True) from None
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = str(error.response.get("Error", {}).get("Code", ""))
        final = _GONE <= status < _SERVER_ERROR and "Thrott" not in code
        raise Undelivered(without_url_secrets(str(error)), final=final) from None
    except BotoCoreError as error:
        raise Undelivered(without_url_secrets(str(error))) from None


def _invoke(notice: Notice) -> None:
    """Call a function by ARN, as a state does: registered, or at the target of Lambda."""
    task = TaskAttempt(
        kind="lambda",
        resource=notice.address,
        service="",
        action="",
        input=notice.body,
        idempotency_key=notice.event_id,
        execution_arn="",
        token="",
        project=notice.project,
    )
    outcome = invoke.call_by_arn(task)
    if isinstance(outcome, Failed):
        missing = outcome.error == "Lambda.ResourceNotFoundException"
        raise Undelivered(f"{outcome.error}: {outcome.cause}", final=missing)


def _publish(client: Any, notice: Notice) -> None:
    more = {}
    if notice.address.endswith(".fifo"):
        more = {"MessageGroupId": _group(notice), "MessageDeduplicationId": notice.event_id}
    client.publish(TopicArn=notice.address, Message=notice.body, **more)


def _enqueue(client: Any, notice: Notice) -> None:
    more = {}
    if notice.address.endswith(".fifo"):
        more = {"MessageGroupId": _group(notice), "MessageDeduplicationId": notice.event_id}
    url = _queue_url(client, notice.address)
    client.send_message(QueueUrl=url, MessageBody=notice.body, **more)


def _queue_url(client: Any, arn: str) -> str:
    account, name = arn.split(":")[4:6]
    answer = client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
    return str(answer["QueueUrl"])


def send_to_dead_letter_queue(queue: str, notice: Notice, texts: dict[str, str]) -> None:
    """Send an undeliverable event to a queue, with EventBridge's attributes.

    Raise ``Undelivered``.
    """
    attributes = {
        name: {"DataType": "String", "StringValue": value[:_ATTRIBUTE]}
        for name, value in texts.items()
        if value
    }
    fifo = {"MessageGroupId": "stateyard", "MessageDeduplicationId": notice.event_id}

    def act() -> None:
        client = _client("sqs", notice)
        client.send_message(
            QueueUrl=_queue_url(client, queue),
            MessageBody=notice.event,
            MessageAttributes=attributes,
            **(fifo if queue.endswith(".fifo") else {}),
        )

    _call_client(act)


def _group(notice: Notice) -> str:
    parameters = notice.settings.get("SqsParameters") or {}
    return str(parameters.get("MessageGroupId") or "stateyard")


def _put_event(client: Any, notice: Notice) -> None:
    event = json.loads(notice.event)
    parameters = notice.settings.get("EventBridgeParameters")
    if parameters:  # of EventBridge Scheduler: an event of its own, and the input is its detail
        detail = json.loads(notice.body)
        event |= {
            "source": parameters["Source"],
            "detail-type": parameters["DetailType"],
            "detail": detail,
        }
    entry = {
        "Time": event["time"],
        "Source": event["source"],
        "DetailType": event["detail-type"],
        "Resources": event["resources"],
        "Detail": json.dumps(event["detail"], ensure_ascii=False),
        "EventBusName": notice.address,
    }
    answer = client.put_events(Entries=[entry])
    if answer.get("FailedEntryCount"):
        wrong = answer["Entries"][0]
        raise Undelivered(f"{wrong.get('ErrorCode')}: {wrong.get('ErrorMessage')}")


_CALLS = {"sns": _publish, "sqs": _enqueue, "events": _put_event}
