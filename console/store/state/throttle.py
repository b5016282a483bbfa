"""Limit the rates of a project by token buckets in the database, shared by all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import F

from console.db import clock
from console.db.writer import write
from console.errors import ThrottlingException
from console.models import ThrottledMinute, TokenBucket

if TYPE_CHECKING:
    from console.config.quotas import Rate
    from console.models import Project

_MINUTE_MS = 60_000


def take(project_id: int, name: str, rate: Rate, number: int = 1) -> int:
    """Take up to ``number`` tokens of a rate; return how many (inside a transaction)."""
    bucket = lock(project_id, name, rate)
    tokens = min(max(int(bucket.tokens), 0), number)
    bucket.tokens -= tokens
    bucket.save()
    return tokens


def lock(project_id: int, name: str, rate: Rate) -> TokenBucket:
    """Return the current bucket, locked, to change and save in this transaction."""
    bucket = (
        TokenBucket.objects.select_for_update().filter(project_id=project_id, name=name).first()
    )
    return _add_tokens(bucket, rate, TokenBucket(project_id=project_id, name=name))


def available_tokens(project_id: int, name: str, rate: Rate) -> float:
    """Return the current number of tokens, without a lock."""
    bucket = TokenBucket.objects.filter(project_id=project_id, name=name).first()
    return _add_tokens(bucket, rate, TokenBucket()).tokens


def _add_tokens(bucket: TokenBucket | None, rate: Rate, new: TokenBucket) -> TokenBucket:
    """Add the tokens since the bucket's last write; a new bucket is full."""
    now_ms = clock.now_ms()
    if bucket is None:
        new.tokens, new.at_ms = rate.bucket, now_ms
        return new
    grown = max(now_ms - bucket.at_ms, 0) * rate.refill / 1000
    bucket.tokens = min(bucket.tokens + grown, rate.bucket)
    bucket.at_ms = max(now_ms, bucket.at_ms)
    return bucket


def start_allowed(project: Project, rate: Rate, state_machine_arn: str) -> None:
    """Take a token for a start; raise ``ThrottlingException`` and count it if there is none."""
    if not write(lambda: take(project.pk, "start_execution", rate)):
        count(project.pk, state_machine_arn, api="StartExecution")
        raise ThrottlingException("Rate exceeded")


def count(project_id: int, state_machine_arn: str, number: int = 1, *, api: str = "") -> None:
    """Count throttled calls of the action ``api``, or delayed state transitions if it is ""."""
    minute = clock.now_ms() // _MINUTE_MS * _MINUTE_MS

    def store() -> None:
        row, _ = ThrottledMinute.objects.get_or_create(
            project_id=project_id, state_machine_arn=state_machine_arn, api=api, minute_ms=minute
        )
        ThrottledMinute.objects.filter(pk=row.pk).update(count=F("count") + number)

    write(store)
