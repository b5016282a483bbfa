"""Old rows go from the beginning of the chain, which stays whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit, clock
from console.db.writer import write
from console.features.audit import chain, retention, verify
from console.features.audit.models import AuditChain, AuditSeal
from console.models import AuditEntry
from tests.features.audit.test_chain import add_rows

if TYPE_CHECKING:
    from console.models import Project

DAY_MS = 24 * 3600 * 1000


@pytest.mark.postgres_too
def test_nothing_goes_by_default(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As before."""
    add_rows(project, 2)
    chain.seal_rows()
    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 10_000 * DAY_MS)
    retention.remove_old_rows()
    assert AuditEntry.objects.count() == AuditSeal.objects.count() == 2


def test_old_rows_go_and_the_chain_holds(
    project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after several removals, and nothing else may go."""
    settings.STATEYARD_AUDIT_RETENTION_DAYS = 30
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    now_ms = clock.now_ms()
    for turn in range(3):
        monkeypatch.setattr(clock, "now_ms", lambda turn=turn: now_ms + turn * 20 * DAY_MS)
        add_rows(project, 5, f"Turn{turn}")
        chain.seal_rows()
        retention.remove_old_rows()
        chain.seal_rows()
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert actions == {"Turn1", "Turn2", "PruneAudit"}
    report = verify.check_audit()
    assert report.findings == []
    assert report.anchor == AuditChain.objects.get().anchor == 5
    newest = AuditEntry.objects.get(action="PruneAudit")
    assert (newest.actor, newest.target) == ("retention", "5")
    newest.delete()
    assert {finding.kind for finding in verify.check_audit().findings} == {"removed"}


def test_an_interrupted_removal_goes_on(
    project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its announcement is there before the first row goes."""
    settings.STATEYARD_AUDIT_RETENTION_DAYS = 30
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    add_rows(project, 5)
    chain.seal_rows()
    actor = audit.Actor("retention")
    write(lambda: audit.record(None, actor, retention.PRUNE, "5", ""))
    assert write(lambda: retention._remove_some(5))
    chain.seal_rows()
    report = verify.check_audit()
    assert (report.findings, report.anchor) == ([], 2)
    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 31 * DAY_MS)
    retention.remove_old_rows()
    chain.seal_rows()
    report = verify.check_audit()
    assert (report.findings, report.anchor) == ([], 6)
