"""``verify_audit`` names the rows that somebody changed, removed or inserted."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command

from console.db import audit
from console.features.audit import chain, verify
from console.features.audit.models import AuditChain, AuditSeal
from console.features.projects import deletion, store
from console.models import AuditEntry, Project
from tests.features.audit.test_chain import add_rows


@pytest.fixture
def entries(project: Project) -> list[AuditEntry]:
    """Return six sealed rows."""
    AuditEntry.objects.all().delete()
    add_rows(project, 5)
    add_rows(None, 1)
    chain.seal_rows()
    assert verify.check_audit().intact
    rows = list(AuditEntry.objects.order_by("pk"))
    AuditChain.objects.update(settled=rows[-1].pk)  # PostgreSQL waits some seconds for late commits
    return rows


def found() -> list[tuple[str, int | None, int | None]]:
    """Return what a check finds."""
    return [
        (finding.kind, finding.position, finding.entry) for finding in verify.check_audit().findings
    ]


@pytest.mark.postgres_too
@pytest.mark.parametrize(
    "change",
    [
        {"actor": "eve"},
        {"at_ms": 1},
        {"action": "StartExecution"},
        {"reason": ""},
        {"target": "y"},
        {"key_id": ""},
        {"request_id": "other"},
        {"execution": "arn"},
        {"project_id": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_row_is_named(entries: list[AuditEntry], change: dict[str, Any]) -> None:
    """Whatever column it is."""
    AuditEntry.objects.filter(pk=entries[2].pk).update(**change)
    assert found() == [("changed", 3, entries[2].pk)]


def test_a_removed_row_is_named(entries: list[AuditEntry]) -> None:
    """Also the last one, and one whose seal went with it."""
    entries[1].delete()
    AuditEntry.objects.filter(pk=entries[5].pk).delete()
    AuditSeal.objects.filter(position=4).delete()
    AuditEntry.objects.filter(pk=entries[3].pk).delete()
    assert [row[:2] for row in found()] == [("removed", 2), ("removed", 4), ("removed", 6)]


@pytest.mark.postgres_too
def test_a_cut_end_is_found(entries: list[AuditEntry]) -> None:
    """The chain knows its newest seal."""
    AuditEntry.objects.filter(pk__gt=entries[3].pk).delete()
    AuditSeal.objects.filter(position__gt=4).delete()
    assert found() == [("removed", 5, None)]


@pytest.mark.postgres_too
def test_an_inserted_row_is_named(entries: list[AuditEntry]) -> None:
    """A row with a number among those that are sealed has no seal."""
    row = entries[2]
    number = row.pk
    AuditEntry.objects.filter(pk=number).delete()
    AuditSeal.objects.filter(position=3).delete()
    AuditEntry.objects.create(pk=number, at_ms=row.at_ms, actor="eve", action="Act", target="x")
    assert found() == [("inserted", None, number), ("removed", 3, None)]


@pytest.mark.postgres_too
@pytest.mark.parametrize("column", ["digest", "hash", "project", "at_ms"])
def test_a_changed_seal_is_found(entries: list[AuditEntry], column: str) -> None:
    """A row and its seal that are changed together do not fit the seal before it."""
    value: Any = "f" * 64 if column in ("digest", "hash") else 7
    AuditSeal.objects.filter(position=3).update(**{column: value})
    kinds = {kind for kind, *_ in found()}
    assert "seal" in kinds


@pytest.mark.postgres_too
def test_a_row_that_is_changed_with_its_seals_digest_is_found(entries: list[AuditEntry]) -> None:
    """Its hash covers the digest."""
    AuditEntry.objects.filter(pk=entries[2].pk).update(actor="eve")
    forged = chain.digest_of(chain.content_of(AuditEntry.objects.get(pk=entries[2].pk)))
    AuditSeal.objects.filter(position=3).update(digest=forged)
    assert found() == [("seal", 3, entries[2].pk)]


@pytest.mark.postgres_too
def test_a_cut_beginning_is_found(entries: list[AuditEntry]) -> None:
    """Nobody announced it."""
    seal = AuditSeal.objects.get(position=2)
    AuditSeal.objects.filter(position__lte=2).delete()
    AuditEntry.objects.filter(pk__lte=entries[1].pk).delete()
    AuditChain.objects.update(anchor=2, anchor_hash=seal.hash)
    assert found() == [("removed", None, None)]


def test_rows_of_a_deleted_project_are_missing_by_right(
    project: Project, django_user_model: Any
) -> None:
    """Those of another project are not, and the seals stay."""
    django_user_model.objects.create_user("ana")
    actor = audit.Actor("root")
    payments = store.create_project("payments", "222222222222", "ana", actor)
    store.archive_project("payments", actor)
    add_rows(project, 2)
    chain.seal_rows()
    number = deletion.begin_deletion("payments", "payments", actor).pk
    chain.seal_rows()
    assert deletion.work_on_deletion(number)
    assert not Project.objects.filter(pk=payments.pk).exists()
    chain.seal_rows()
    report = verify.check_audit()
    assert report.findings == []
    assert report.removed_with_projects >= 2
    assert AuditSeal.objects.filter(project=payments.pk).exists()
    AuditEntry.objects.filter(project=project).last().delete()
    assert [kind for kind, *_ in found()] == ["removed"]


def test_the_command_prints_findings_and_ends_with_3(entries: list[AuditEntry]) -> None:
    """For people, and as JSON."""

    def run(*options: str) -> str:
        out = io.StringIO()
        call_command("verify_audit", *options, stdout=out)
        return out.getvalue()

    shown = run()
    newest = AuditChain.objects.get()
    assert shown.splitlines() == [
        "6 rows, nothing wrong",
        f"newest: position 6, hash {newest.hash}",
    ]
    report = json.loads(run("--json"))
    assert report["intact"]
    assert report["head"] == {"position": 6, "hash": newest.hash}
    AuditEntry.objects.filter(pk=entries[0].pk).update(actor="eve")
    out = io.StringIO()
    for options in ([], ["--json"]):
        with pytest.raises(SystemExit) as end:
            call_command("verify_audit", *options, stdout=out)
        assert end.value.code == 3
    first, *_, last = out.getvalue().splitlines()
    assert first == f"changed: row {entries[0].pk} (position 1, Act by eve) was changed"
    (finding,) = json.loads(last)["findings"]
    assert (finding["kind"], finding["position"], finding["row"]) == ("changed", 1, entries[0].pk)


@pytest.mark.postgres_too
def test_findings_are_bounded(entries: list[AuditEntry], monkeypatch: pytest.MonkeyPatch) -> None:
    """The report counts the others."""
    monkeypatch.setattr(verify, "MOST_FINDINGS", 2)
    AuditEntry.objects.update(actor="eve")
    report = verify.check_audit()
    assert (len(report.findings), report.more_findings) == (2, 4)
