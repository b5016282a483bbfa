"""Relay events from the outbox to their targets, on threads shared fairly among projects.

One thread fires schedules, matches events with rules and claims deliveries. It makes no outside
calls, and claims only as many as can start at once, so that the order is in the rows, not in a
queue in memory.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from console import access, execution_rights
from console.db.audit import Actor
from console.db.writer import is_outage, release_connection
from console.errors import ServiceError
from console.events import addresses
from console.events import body as body_of_events
from console.feature import Hook, hooked
from console.features.notifications import inputs, notice_text, notices
from console.features.notifications.store import deliveries, routing
from console.integrations.redaction import without_secrets, without_url_secrets
from console.masking.mask import OPEN, Mask
from console.masking.masked_execution import masks_of, places_of
from console.models import Execution
from console.statuses import ExecutionStatus
from console.store.executions.last_states import failed_states
from console.store.executions.start import start_execution
from console.store.machines import versions
from console.worker.call_pool import CallPool
from console.worker.fair_pool import FairPool
from console.worker.fair_shares import FairQueue, FairShare, FairShares
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.models import QuerySet

    from console.models import Delivery
    from console.store.state.open_work import OpenWork

log = structlog.get_logger(__name__)
SENDS_AT_ONCE = 48
"""Deliveries under way at once: 16 of one target, 24 of one project (``fair_shares``)."""
START_THREADS = 12
STARTS_AT_ONCE = 96
"""Starts that are claimed at once: they wait for the database only, and take milliseconds."""
SILENT_S = 5.0
"""A failed attempt that took at least this time counts as a timeout."""
_ROUND = "This rule started the execution of this event, so it would loop. Narrow its pattern"
_TWICE = "ExecutionAlreadyExists"
_FAILED = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
_WORDED = ("email", "slack", "teams")
"""The kinds of targets that get a text of people's words, which names the failed state."""
_FULL = ("ThrottlingException", "ExecutionLimitExceeded")


class _Lane:
    """The threads for one kind of deliveries, and the limit of claimed ones."""

    def __init__(self, name: str, threads: int, claimed: int) -> None:
        """Start no thread yet."""
        self.pool = FairPool(threads, name)
        self.claimed = FairShares(claimed)  # guarded by the relay's lock


class OutboxRelay:
    """Thread of the relay; several ``wake`` calls are merged into one pass.

    Starts of state machines have their own threads, which never wait for a network. Both groups of
    threads are shared fairly among projects and their targets (``fair_shares``).
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._router = CallPool(1, "events")
        self._starts = _Lane("starts", START_THREADS, STARTS_AT_ONCE)
        self._sends = _Lane("sends", SENDS_AT_ONCE, SENDS_AT_ONCE)
        self._lock = threading.Lock()
        self._asked = False
        self._in_flight: set[int] = set()

    def sweep(self, work: OpenWork) -> None:
        """Check for events to match or deliveries to send."""
        if work.events:
            self.wake()

    def wake(self) -> None:
        """Start a pass soon."""
        with self._lock:
            if self._asked:
                return
            self._asked = True
        self._router.submit(self._look)

    def stop(self, seconds: float) -> None:
        """Accept no more work and wait briefly for running deliveries."""
        self._router.stop(seconds)
        self._starts.pool.stop(seconds)
        self._sends.pool.stop(seconds)

    def _look(self) -> None:
        with self._lock:
            self._asked = False  # what comes from here on asks again
        log_errors("events could not be sorted", self._sort, None)

    def _sort(self) -> None:
        """Fire, match and claim small amounts in turns, so that none blocks another."""
        more = True
        while more:
            with self._lock:
                in_flight = set(self._in_flight)
            deliveries.release_deliveries(in_flight)
            more = deliveries.fire_due() == deliveries.AT_ONCE
            more = routing.route_events() or more
            self._claim()

    def _claim(self) -> None:
        """Claim deliveries up to the free places of the fair shares."""
        due = deliveries.due_targets()
        chosen: dict[int, tuple[_Lane, FairShare]] = {}
        counts: Counter[int] = Counter()
        with self._lock:
            for lane in (self._starts, self._sends):
                of_lane = [target for target in due if target.starts == (lane is self._starts)]
                for share, target in _take_turns(lane.claimed, of_lane):
                    chosen[target] = lane, share
                    counts[target] += 1
        claimed: list[tuple[int, int]] = []
        try:
            claimed = deliveries.claim_due(counts)
        finally:
            with self._lock:
                self._in_flight.update(number for number, _ in claimed)
                counts.subtract(target for _, target in claimed)
                for target, count in counts.items():
                    for _ in range(count):
                        chosen[target][0].claimed.end(chosen[target][1])
        for number, target in claimed:
            lane, share = chosen[target]
            lane.pool.submit_for(share, partial(self._relay, number, lane, share))

    def _relay(self, number: int, lane: _Lane, share: FairShare) -> None:
        bury = log_errors("a delivery failed", partial(relay_delivery, number), None)
        if bury is not None and lane is self._starts:  # a queue outside is called
            job = partial(self._bury, bury, number, lane, share)
            self._sends.pool.submit_for(share, job)
        elif bury is not None:
            self._bury(bury, number, lane, share)
        else:
            self._end(number, lane, share)

    def _bury(self, bury: Callable[[], None], number: int, lane: _Lane, share: FairShare) -> None:
        log_errors("a dead letter failed", bury, None)
        self._end(number, lane, share)

    def _end(self, number: int, lane: _Lane, share: FairShare) -> None:
        with self._lock:
            self._in_flight.discard(number)
            lane.claimed.end(share)
        self.wake()


def _take_turns(
    claimed: FairShares, due: list[deliveries.DueTarget]
) -> Iterator[tuple[FairShare, int]]:
    """Yield share and target of each delivery that can be claimed now, and count it.

    A target that did not answer in time gets one at a time.
    """
    shares = {target.target: FairShare(target.project, str(target.target)) for target in due}
    due.sort(
        key=lambda target: (
            claimed.of_project(target.project),
            claimed.of_target(shares[target.target]),
            target.oldest_ms,
        )
    )
    queue: FairQueue[int] = FairQueue(claimed)
    free = claimed.free
    for target in due:
        share = shares[target.target]
        most = 1 - claimed.of_target(share) if target.timeouts else free
        for _ in range(min(target.count, most)):
            queue.put(share, target.target)
    while (turn := queue.take()) is not None:
        yield turn


def relay_delivery(number: int) -> Callable[[], None] | None:
    """Send one delivery to its target and record the outcome.

    If it failed for good and its target has a dead-letter queue, return a function that sends it to
    the queue (an outside call) and records both outcomes.
    """
    delivery = deliveries.load_delivery(number)
    if delivery is None:
        return None
    project = delivery.target.rule.project
    if project.archived_ms is not None:
        deliveries.mark_expired(delivery, access.archive_words(project))
        return None
    settings = json.loads(delivery.target.settings)
    if deliveries.is_too_old_to_send(delivery, settings.get("RetryPolicy") or {}):
        return _record_expiry(delivery, settings)
    called: float | None = None  # since when something outside is called
    try:
        notice = _start_or_word(delivery, settings)
        if notice is not None:
            release_connection()  # the call may take its time
            called = time.monotonic()
            notices.send_notice(notice)
    except notices.Undelivered as problem:
        timed_out = _is_timeout(called)
        return _failed(delivery, settings, str(problem), final=problem.final, timed_out=timed_out)
    except Exception as error:
        if is_outage(error):
            raise  # no thread holds the delivery any more: it is released and sent again
        log.exception("a delivery raised")
        reason = without_url_secrets(f"{type(error).__name__}: {error}", delivery.target.address)
        timed_out = _is_timeout(called)
        return _failed(delivery, settings, reason, final=False, timed_out=timed_out)
    deliveries.mark_delivered(delivery)
    return None


def _is_timeout(called: float | None) -> bool:
    """Return whether a failed call took long enough to delay other targets."""
    return called is not None and time.monotonic() - called >= SILENT_S


def _failed(
    delivery: Delivery, settings: dict[str, Any], problem: str, *, final: bool, timed_out: bool
) -> Callable[[], None] | None:
    dead = final or deliveries.is_over(delivery, settings.get("RetryPolicy") or {})
    queue = _dead_letter_queue(settings)

    def bury() -> None:
        # sent before it is recorded: after a crash in between it is sent again
        last_error = _dead_letter(delivery, queue, problem, settings)
        deliveries.mark_failed(delivery, last_error, dead=True, timed_out=timed_out)

    if dead and queue:
        deliveries.note_problem(delivery, problem)
        return bury
    deliveries.mark_failed(delivery, problem, dead=dead, timed_out=timed_out)
    return None


def _record_expiry(delivery: Delivery, settings: dict[str, Any]) -> Callable[[], None] | None:
    """Record that a delivery waited too long for a silent target; return as ``relay_delivery``."""
    problem = f"The event expired while its target did not answer. {delivery.last_error}".strip()
    queue = _dead_letter_queue(settings)
    if not queue:
        deliveries.mark_expired(delivery, problem)
        return None

    def bury() -> None:
        deliveries.mark_expired(delivery, _dead_letter(delivery, queue, problem, settings))

    return bury


def _dead_letter_queue(settings: dict[str, Any]) -> str:
    return str((settings.get("DeadLetterConfig") or {}).get("Arn") or "")


def _dead_letter(delivery: Delivery, queue: str, problem: str, settings: dict[str, Any]) -> str:
    """Send a failed delivery to the target's dead-letter queue; return all errors."""
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
        notice = _notice(delivery, event.body, event.body, settings)
        release_connection()
        notices.send_to_dead_letter_queue(queue, notice, attributes)
    except notices.Undelivered as further:
        return f"{problem}; and its dead-letter queue: {further}"
    return problem


def _start_or_word(delivery: Delivery, settings: dict[str, Any]) -> notices.Notice | None:
    """Start the target's execution, or return the message for the target."""
    target, event = delivery.target, delivery.event
    rule = target.rule
    kind = addresses.address_kind(target.address, universal=True)
    if kind in _WORDED:
        shown, body = _worded_event(delivery, kind, settings)
    else:
        shown, body = event.body, inputs.build_input(event.body, settings, rule.arn, rule.name)
    if rule.schedule_group:
        body = inputs.fill_context(body, _context_attributes(delivery))
    if kind == "machine":
        _start(delivery, body)
        return None
    return _notice(delivery, shown, body, settings)


def _context_attributes(delivery: Delivery) -> dict[str, str]:
    """Return the values of EventBridge Scheduler's context attributes."""
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
        further=_further_facts(delivery),
    )


def _further_facts(delivery: Delivery) -> dict[str, str]:
    """Return the failed state and the summary of an event's execution, by name."""
    if addresses.address_kind(delivery.target.address) not in _WORDED:
        return {}
    execution = _execution_of_event(delivery).select_related("project").first()
    if execution is None:
        return {}
    facts = {}
    if execution.status in _FAILED:
        state = failed_states([execution.pk]).get(execution.pk, "")
        facts[notice_text.FAILED_STATE] = state
    for summarize in hooked(Hook.FRESH_SUMMARY):
        facts[notice_text.SUMMARY] = summarize(execution)
    return facts


def _worded_event(delivery: Delivery, kind: str, settings: dict[str, Any]) -> tuple[str, str]:
    """Return an event and its target input, masked for people.

    A mail or chat message shows no more than the pages do. Programs get the unmasked event, as from
    AWS. Event texts in a chat target's own template are escaped, so that they are no markup.
    """
    mask, rule = _mask_of_event(delivery), delivery.target.rule
    text = delivery.event.body
    # Only this server puts events of this source: its payloads are texts, as in a history.
    own = json.loads(text).get("source") == body_of_events.SOURCE
    masked = mask.details(text) if own else mask.event(text)
    body = inputs.build_input(masked, settings, rule.arn, rule.name)
    if body == masked:
        return masked, body
    if kind in notice_text.CHATS:
        plain = notice_text.CHATS[kind]
        body = inputs.build_input(inputs.map_texts(masked, plain), settings, rule.arn, rule.name)
    return masked, mask.payload(body)


def _mask_of_event(delivery: Delivery) -> Mask:
    """Return the mask of the event's execution, or of the project."""
    project = delivery.target.rule.project
    if not project.masked:
        return OPEN
    numbers = list(_execution_of_event(delivery).values_list("pk", flat=True))
    masks = list(masks_of(project, numbers).values())
    return masks[0] if masks else Mask(places_of(project.masked))


def _execution_of_event(delivery: Delivery) -> QuerySet[Execution]:
    """Return the execution of an event; empty if none or deleted."""
    detail = json.loads(delivery.event.body).get("detail")
    arn = detail.get("executionArn") if isinstance(detail, dict) else None
    if not isinstance(arn, str):
        return Execution.objects.none()
    return Execution.objects.filter(project=delivery.target.rule.project, arn=arn)


# -- state machines --------------------------------------------------------------------------------


def _start(delivery: Delivery, text: str) -> None:
    """Start the target's execution once, because its name is derived from the delivery."""
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
    """Whether a rule would start a state machine after an execution it started itself.

    Each start publishes two changes, so the number would double every time.
    """
    started = Execution.objects.filter(arn=delivery.event.about, state_machine=machine)
    whose = started.filter(execution_rights.started_through(_rule_name(delivery)))
    return whose.exists()


def _actor(delivery: Delivery) -> Actor:
    """Return the actor of a start: the rule with its last editor's rights, and the event's sender.

    The rights of the sender do not count: the rule determines what its events do.
    """
    rule, sender = delivery.target.rule, delivery.event.sent_by
    people = execution_rights.names_in(rule.edited_by) if rule.edited_by else (rule.created_by,)
    return Actor(execution_rights.name_with_sender(_rule_name(delivery), sender), acting_for=people)


def _rule_name(delivery: Delivery) -> str:
    rule = delivery.target.rule
    if rule.schedule_group:
        return f"schedule {rule.schedule_group}/{rule.schedule_name}"
    return f"rule {rule.name}"
