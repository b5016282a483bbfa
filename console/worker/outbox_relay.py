"""Relay events from the outbox on threads, so that a slow receiver delays no other work."""

from __future__ import annotations

import json
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from console import execution_rights
from console.errors import ServiceError
from console.events import addresses, inputs
from console.integrations import notices
from console.integrations.redaction import without_secrets, without_url_secrets
from console.masking.mask import Mask
from console.masking.masked_execution import masks_of, places_of
from console.models import Execution
from console.statuses import ExecutionStatus
from console.store.db.audit import Actor
from console.store.events import deliveries, outbox
from console.store.executions.failed_states import failed_states
from console.store.executions.start import start_execution
from console.store.machines import versions
from console.worker.call_pool import CallPool
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from console.models import Delivery

THREADS = 8
_ROUND = "This rule started the execution it tells of: it would go round. Narrow its pattern"
_TWICE = "ExecutionAlreadyExists"
_FAILED = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
_WORDED = ("email", "slack", "teams")
"""The kinds of targets that get a text of people's words, which names the failed state."""
_FULL = ("ThrottlingException", "ExecutionLimitExceeded")


class OutboxRelay:
    """``look`` as often as you like: what is due is taken once."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._router = CallPool(1, "events")
        self._pool = CallPool(THREADS, "relay")
        self._lock = threading.Lock()
        self._asked = False
        self._in_flight: set[int] = set()

    def look(self) -> None:
        """Find out soon what there is to route and to send."""
        with self._lock:
            if self._asked:
                return
            self._asked = True
        self._router.submit(self._look)

    def stop(self, seconds: float) -> None:
        """Take no more and wait a little for what is under way."""
        self._router.stop(seconds)
        self._pool.stop(seconds)

    def _look(self) -> None:
        with self._lock:
            self._asked = False  # what comes from here on asks again
        log_errors("events could not be sorted", self._sort, None)

    def _sort(self) -> None:
        with self._lock:
            in_flight = set(self._in_flight)
        deliveries.release_deliveries(in_flight)
        deliveries.fire_due()
        while outbox.route_events():
            pass
        for number in deliveries.claim_due(THREADS - len(in_flight)):
            with self._lock:
                self._in_flight.add(number)
            self._pool.submit(partial(self._relay, number))

    def _relay(self, number: int) -> None:
        log_errors("a delivery failed", partial(relay_delivery, number), None)
        with self._lock:
            self._in_flight.discard(number)
        self.look()


def relay_delivery(number: int) -> None:
    """Take one delivery to its target and note how it went."""
    delivery = deliveries.load_delivery(number)
    if delivery is None:
        return
    settings = json.loads(delivery.target.settings)
    try:
        _send(delivery, settings)
    except notices.Undelivered as problem:
        _failed(delivery, settings, str(problem), final=problem.final)
    except Exception as error:
        reason = without_url_secrets(f"{type(error).__name__}: {error}", delivery.target.address)
        _failed(delivery, settings, reason, final=False)
        raise
    else:
        deliveries.mark_delivered(delivery)


def _failed(delivery: Delivery, settings: dict[str, Any], problem: str, *, final: bool) -> None:
    policy = settings.get("RetryPolicy") or {}
    most = policy.get("MaximumRetryAttempts")
    dead = final or deliveries.is_over(
        delivery,
        most=deliveries.MOST_ATTEMPTS if most is None else int(most),
        age_s=int(policy.get("MaximumEventAgeInSeconds") or 0),
    )
    queue = (settings.get("DeadLetterConfig") or {}).get("Arn")
    if dead and queue:  # before it is noted: whoever dies in between sends it again
        problem = _dead_letter(delivery, queue, problem, settings)
    deliveries.mark_failed(delivery, problem, dead=dead)


def _dead_letter(delivery: Delivery, queue: str, problem: str, settings: dict[str, Any]) -> str:
    """Send what is dead to the target's queue for it; return the problem, with a further one."""
    event, target = delivery.event, delivery.target
    attributes = {
        "SCHEDULE_ARN" if target.rule.schedule_group else "RULE_ARN": target.rule.arn,
        "TARGET_ARN": without_secrets(target.address),
        "ERROR_MESSAGE": problem,
        "RETRY_ATTEMPTS": str(delivery.attempts),
    }
    if target.rule.schedule_group:
        attributes |= {
            "EXECUTION_ID": event.event_id,
            "SCHEDULED_TIME": _scheduled_time(delivery),
        }
    try:
        notices.send_to_dead_letter_queue(
            queue, _notice(delivery, event.body, event.body, settings), attributes
        )
    except notices.Undelivered as further:
        return f"{problem}; and its dead-letter queue: {further}"
    return problem


def _send(delivery: Delivery, settings: dict[str, Any]) -> None:
    target, event = delivery.target, delivery.event
    rule = target.rule
    kind = addresses.address_kind(target.address, universal=True)
    shown = _masked_event(delivery) if kind in _WORDED else event.body
    body = inputs.build_input(shown, settings, rule.arn, rule.name)
    if rule.schedule_group:
        body = inputs.fill_context(body, _context_attributes(delivery))
    if kind == "machine":
        _start(delivery, body)
        return
    notices.send_notice(_notice(delivery, shown, body, settings))


def _context_attributes(delivery: Delivery) -> dict[str, str]:
    """Return what EventBridge Scheduler puts into an input, by the names of its attributes."""
    return {
        "schedule-arn": delivery.target.rule.arn,
        "scheduled-time": _scheduled_time(delivery),
        "execution-id": delivery.event.event_id,
        "attempt-number": str(delivery.attempts + 1),
    }


def _scheduled_time(delivery: Delivery) -> str:
    return str(json.loads(delivery.event.body)["time"])


def _notice(delivery: Delivery, event: str, body: str, settings: dict[str, Any]) -> notices.Notice:
    target = delivery.target
    return notices.Notice(
        event_id=delivery.event.event_id,
        event=event,
        body=body,
        address=target.address,
        region=target.rule.region,
        secret=notices.target_secret(target.rule.arn, target.target_id),
        project=target.rule.project.name,
        settings=settings,
        state=_failed_state(delivery),
    )


def _failed_state(delivery: Delivery) -> str:
    """Return in which state the execution failed that a text tells of, "" where there is none."""
    if addresses.address_kind(delivery.target.address) not in _WORDED:
        return ""
    rows = _execution_of_event(delivery).filter(status__in=_FAILED)
    numbers = list(rows.values_list("pk", flat=True))
    return failed_states(numbers).get(numbers[0], "") if numbers else ""


def _masked_event(delivery: Delivery) -> str:
    """Return an event as people may read it: a mail or a chat shows no more than the pages do.

    Programs get the event as it is, as from AWS.
    """
    project, text = delivery.target.rule.project, delivery.event.body
    if not project.masked:
        return text
    numbers = list(_execution_of_event(delivery).values_list("pk", flat=True))
    masks = list(masks_of(project, numbers).values()) or [Mask(places_of(project.masked))]
    return masks[0].details(text)


def _execution_of_event(delivery: Delivery) -> QuerySet[Execution]:
    """Return the execution that an event tells of, nothing if it tells of none or it is deleted."""
    detail = json.loads(delivery.event.body).get("detail")
    arn = detail.get("executionArn") if isinstance(detail, dict) else None
    if not isinstance(arn, str):
        return Execution.objects.none()
    return Execution.objects.filter(project=delivery.target.rule.project, arn=arn)


# -- state machines --------------------------------------------------------------------------------


def _start(delivery: Delivery, text: str) -> None:
    """Start the target's execution, once: its name says whether it was."""
    rule = delivery.target.rule
    name, address = deliveries.execution_name(delivery), delivery.target.address
    trace_header = ""
    if addresses.is_universal(address):
        params = json.loads(text)
        name, address = params.get("Name") or name, params["StateMachineArn"]
        text, trace_header = params.get("Input", "{}"), params.get("TraceHeader", "")
    try:
        target = versions.resolve_target(rule.project, address)
        if _goes_round(delivery, target.machine.pk):
            raise notices.Undelivered(_ROUND, final=True)
        of_machine = Execution.objects.filter(state_machine=target.machine, name=name)
        if of_machine.exists():  # also of an Express machine, where a name may come twice
            return
        start_execution(
            target.machine,
            version=target.version,
            alias_arn=target.alias.arn if target.alias else "",
            name=name,
            input=text,
            trace_header=trace_header,
            actor=_actor(delivery),
        )
    except ServiceError as error:
        if error.code != _TWICE:
            raise notices.Undelivered(error.message, final=error.code not in _FULL) from None


def _goes_round(delivery: Delivery, machine: int) -> bool:
    """Tell whether a rule would start a machine because of an execution it started there itself.

    Each start tells of two changes, so that would be twice as many every time.
    """
    started = Execution.objects.filter(arn=delivery.event.about, state_machine=machine)
    return started.filter(started_by=_actor(delivery).name).exists()


def _actor(delivery: Delivery) -> Actor:
    """Return who starts: the rule, with the rights of who last changed it."""
    rule = delivery.target.rule
    people = execution_rights.names_in(rule.edited_by) if rule.edited_by else (rule.created_by,)
    if rule.schedule_group:
        return Actor(f"schedule {rule.schedule_group}/{rule.schedule_name}", acting_for=people)
    return Actor(f"rule {rule.name}", acting_for=people)
