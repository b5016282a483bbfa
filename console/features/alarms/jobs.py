"""Job that evaluates all alarms, and stores and publishes changed states."""

from __future__ import annotations

from functools import partial

import structlog

from console.db import clock
from console.feature import PeriodicJob
from console.features.alarms import store as alarms
from console.features.alarms.alarm_rules import evaluate_alarm
from console.features.alarms.models import Alarm
from console.worker.retrying import log_errors

log = structlog.get_logger(__name__)


def evaluate_alarms() -> int:
    """Evaluate the alarms of projects; return the number of alarms whose state changed.

    Alarms of archived projects are not evaluated and keep their states. An error of one alarm is
    logged and does not affect the other alarms.
    """
    rows = Alarm.objects.filter(project__archived_ms=None).order_by("pk")
    rows = rows.select_related("project", "machine")
    return sum(log_errors("an alarm failed", partial(_evaluate, alarm), False) for alarm in rows)


def _evaluate(alarm: Alarm) -> bool:
    verdict = evaluate_alarm(alarm, clock.now_ms())
    changed = alarms.change_state(alarm, verdict.state, verdict.reason)
    if changed:
        log.info("an alarm changed", alarm=alarm.arn, state=verdict.state, reason=verdict.reason)
    return changed


JOBS = (PeriodicJob("alarms", evaluate_alarms),)
