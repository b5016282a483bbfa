"""Rows get their seals in order, whatever order they are committed in."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction

from console.db import audit, clock
from console.db.writer import write
from console.features.audit import chain, verify
from console.features.audit.models import NO_HASH, AuditChain, AuditSeal
from console.models import AuditEntry
from tests.waiting import wait_until

if TYPE_CHECKING:
    from console.models import Project

ANA = audit.Actor("ana", "AKIA", "request")


def add_rows(project: Project | None, count: int, action: str = "Act") -> None:
    """Write audit rows as changes do."""
    for number in range(count):
        write(lambda number=number: audit.record(project, ANA, action, f"thing{number}", "why"))


def test_each_row_has_the_hash_of_its_content_and_of_the_row_before(project: Project) -> None:
    """The chain begins with zeros, and its end is that of the newest row."""
    AuditEntry.objects.all().delete()
    add_rows(project, 3)
    add_rows(None, 1)
    chain.seal_rows()
    seals = list(AuditSeal.objects.order_by("pk"))
    assert [seal.position for seal in seals] == [1, 2, 3, 4]
    assert [seal.entry for seal in seals] == [
        entry.pk for entry in AuditEntry.objects.order_by("pk")
    ]
    assert [seal.project for seal in seals] == [project.pk] * 3 + [None]
    previous = NO_HASH
    for seal in seals:
        entry = AuditEntry.objects.get(pk=seal.entry)
        assert seal.digest == chain.digest_of(chain.content_of(entry))
        assert seal.hash == chain.hash_of(previous, seal)
        previous = seal.hash
    assert AuditChain.objects.get().hash == previous


def test_the_content_is_every_column() -> None:
    """A column that is added later must be in the digest as well."""
    columns = {field.attname for field in AuditEntry._meta.concrete_fields}
    assert columns == {*chain._FIELDS}


@pytest.mark.postgres_too
def test_sealing_again_changes_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows have one seal each, also after thousands and many turns."""
    monkeypatch.setattr(chain, "_TURN_S", 300.0)
    add_rows(project, 3)
    write(
        lambda: AuditEntry.objects.bulk_create(
            AuditEntry(at_ms=number, actor="old", action="Old", target="x")
            for number in range(2 * chain.AT_ONCE)
        )
    )
    chain.seal_rows()
    seals = list(AuditSeal.objects.values())
    chain.seal_rows()
    assert list(AuditSeal.objects.values()) == seals
    assert len(seals) == AuditEntry.objects.count()
    assert verify.check_audit().intact


@pytest.mark.postgres_too
def test_two_sealers_at_once_make_one_chain(project: Project) -> None:
    """As two workers do that both think they lead for a moment."""
    add_rows(project, 40)

    def seal() -> None:
        chain.seal_rows()
        connection.close()

    threads = [threading.Thread(target=seal) for _ in range(4)]
    for thread in threads:
        thread.start()
    add_rows(project, 40)
    for thread in threads:
        thread.join()
    chain.seal_rows()
    report = verify.check_audit()
    assert report.findings == []
    assert report.rows == AuditEntry.objects.count()


@pytest.mark.postgres_only
def test_a_row_that_commits_late_is_sealed_and_not_reported(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number is below those of rows that are sealed already."""
    late, written = threading.Event(), threading.Event()

    def write_late() -> None:
        with transaction.atomic():
            audit.record(project, ANA, "Late", "x")
            written.set()
            late.wait(30)
        connection.close()

    thread = threading.Thread(target=write_late)
    thread.start()
    assert written.wait(30)
    add_rows(project, 2)
    now_ms = clock.now_ms()
    for turn in range(3):
        monkeypatch.setattr(clock, "now_ms", lambda turn=turn: now_ms + turn * 10_000)
        chain.seal_rows()
    assert AuditChain.objects.get().settled < AuditEntry.objects.latest("pk").pk
    late.set()
    thread.join()
    turns = itertools.count(3)

    def all_are_settled() -> bool:
        turn = next(turns)
        monkeypatch.setattr(clock, "now_ms", lambda: now_ms + turn * 10_000)
        chain.seal_rows()
        return AuditChain.objects.get().settled == AuditEntry.objects.latest("pk").pk

    # a transaction of another database on the server delays it, too
    wait_until(all_are_settled)
    rows = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert rows[-3:] == ["Late", "Act", "Act"]
    newest = AuditSeal.objects.latest("pk")
    assert AuditEntry.objects.get(pk=newest.entry).action == "Late"
    report = verify.check_audit()
    assert (report.findings, report.waiting) == ([], 0)


def test_a_change_executes_no_statement_for_the_chain(
    project: Project, django_assert_num_queries: Any
) -> None:
    """The seal comes later, from the leading worker."""
    with django_assert_num_queries(1):
        audit.record(project, ANA, "Act", "x")
    assert not AuditSeal.objects.exists()
