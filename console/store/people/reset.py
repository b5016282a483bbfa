"""Empty a throw-away server: delete all work (machines, executions), keep people and projects."""

from __future__ import annotations

import structlog
from django.apps import apps

from console.db import audit
from console.db.writer import write
from console.models import (
    AccessKey,
    AuditEntry,
    Invitation,
    LoginAttempts,
    LoginLink,
    Membership,
    Project,
    ReadinessMinute,
    ServerFact,
    Worker,
)
from console.samples import PROJECT
from console.store.people.sample_project import load_samples

KEPT = (
    *(AccessKey, AuditEntry, Invitation, LoginAttempts, LoginLink, Membership, Project),
    *(ReadinessMinute, ServerFact, Worker),
)
"""Kept tables: people, the server itself, and the audit trail.

A feature's table is kept, too, if its model has ``kept_by_reset``.
"""
log = structlog.get_logger(__name__)


def reset_server(actor: audit.Actor) -> None:
    """Delete machines, executions, activities, rules, logs and metrics of all projects.

    The samples are created again, if there were any. Work in progress finds no row any more and
    writes nothing, because its statements check the version of a run and the status of a task.
    """
    write(lambda: _empty_tables(actor))
    samples = Project.objects.filter(name=PROJECT).first()
    if samples is not None:
        load_samples(samples)
    log.warning("the server was reset")


def _empty_tables(actor: audit.Actor) -> None:
    """Delete all rows; constraints between them are checked when the transaction ends."""
    for model in apps.get_app_config("console").get_models():
        if model not in KEPT and not getattr(model, "kept_by_reset", False):
            rows = model._base_manager.all()  # noqa: SLF001 - the managers leave imports out
            rows._raw_delete(rows.db)  # noqa: SLF001 - no row is loaded for signals nobody gets
    for project in Project.objects.all():
        audit.record(project, actor, "Reset", "")
