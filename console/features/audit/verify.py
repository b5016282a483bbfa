"""Verify the audit against its chain: find rows that were changed, deleted or inserted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from console.features.audit import chain
from console.features.audit.models import NO_HASH, AuditChain, AuditSeal
from console.features.audit.retention import PRUNE
from console.models import AuditEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 500
MOST_FINDINGS = 1_000
"""Maximum number of listed findings; further findings are only counted."""
_PROJECT = re.compile(r"begin: .*, project (\d+)")


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A difference between the rows and the chain.

    ``kind``: changed, removed, inserted, or seal for the chain itself. ``entry`` and ``position``:
    of the row, None if not known.
    """

    kind: str
    message: str
    position: int | None = None
    entry: int | None = None


@dataclass
class AuditReport:
    """The result of a check.

    ``rows``: number of checked seals; ``waiting``: number of unsealed rows.
    ``removed_with_projects``: rows deleted with their project. ``head``: the newest seal.
    """

    rows: int = 0
    waiting: int = 0
    removed_with_projects: int = 0
    anchor: int = 0
    anchor_hash: str = NO_HASH
    head: int = 0
    head_hash: str = NO_HASH
    findings: list[AuditFinding] = field(default_factory=list)
    more_findings: int = 0

    @property
    def intact(self) -> bool:
        """Return whether there are no findings."""
        return not self.findings

    def add(self, finding: AuditFinding) -> None:
        """Add a finding; above the maximum only count it."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
        else:
            self.more_findings += 1


def check_audit() -> AuditReport:
    """Check all rows, while the server may be running."""
    ends = AuditChain.objects.first() or AuditChain()
    report = AuditReport(head=ends.position, head_hash=ends.hash)
    findings: list[AuditFinding] = []
    missing: list[AuditSeal] = []
    _check_seals(ends, report, findings, missing)
    for entry in chain.find_unsealed(0).filter(pk__lte=ends.settled).iterator():
        words = f"row {entry.pk} ({_describe(entry)}) has no seal: an insertion, or a removed seal"
        findings.append(AuditFinding("inserted", words, entry=entry.pk))
    removals = _Removals()
    findings += removals.check_anchor()
    for seal in missing:
        if seal.project in removals.projects:
            report.removed_with_projects += 1
        else:
            words = f"row {seal.entry} (position {seal.position}) was removed"
            findings.append(AuditFinding("removed", words, seal.position, seal.entry))
    # what retention removed in the meantime was no finding
    for finding in sorted(findings, key=lambda finding: finding.position or 0):
        if finding.position is None or finding.position > removals.ends.anchor:
            report.add(finding)
    report.anchor, report.anchor_hash = removals.ends.anchor, removals.ends.anchor_hash
    report.waiting = chain.find_unsealed(removals.ends.settled).count()
    return report


def _describe(entry: AuditEntry) -> str:
    return f"{entry.action} by {entry.who or 'the server'}"


def _check_seals(
    ends: AuditChain, report: AuditReport, findings: list[AuditFinding], missing: list[AuditSeal]
) -> None:
    """Check the seals from the anchor to the newest one, each with its row."""
    position, previous = ends.anchor, ends.anchor_hash
    for seal, entry in _read_seals(ends.anchor):
        if seal.position > ends.position:
            break
        report.rows += 1
        if seal.position > position + 1:
            findings.append(_find_gap(position + 1, seal.position - 1))
        elif seal.hash != chain.hash_of(previous, seal):
            words = f"the seal of row {seal.entry} (position {seal.position}) was changed"
            findings.append(AuditFinding("seal", words, seal.position, seal.entry))
        if entry is None:
            missing.append(seal)
        elif seal.digest != chain.digest_of(chain.content_of(entry)):
            words = f"row {entry.pk} (position {seal.position}, {_describe(entry)}) was changed"
            findings.append(AuditFinding("changed", words, seal.position, entry.pk))
        position, previous = seal.position, seal.hash
    if position < ends.position:
        findings.append(_find_gap(position + 1, ends.position))
    elif previous != ends.hash:
        words = f"the newest seal (position {position}) is not the end of the chain"
        findings.append(AuditFinding("seal", words, position))


def _find_gap(first: int, last: int) -> AuditFinding:
    positions = f"position {first}" if first == last else f"positions {first} to {last}"
    return AuditFinding(
        "removed", f"{positions}: the row{'s' * (last > first)} or seals were removed", first
    )


def _read_seals(after: int) -> Iterator[tuple[AuditSeal, AuditEntry | None]]:
    """Yield seals in order, each with its row or None."""
    while seals := list(AuditSeal.objects.filter(position__gt=after).order_by("pk")[:_AT_ONCE]):
        entries = AuditEntry.objects.in_bulk([seal.entry for seal in seals])
        for seal in seals:
            yield seal, entries.get(seal.entry)
        after = seals[-1].position


class _Removals:
    """Legitimate deletions: with a deleted project, or by retention."""

    def __init__(self) -> None:
        """Read the deletions after the walk, because the server may be running."""
        self.ends = AuditChain.objects.first() or AuditChain()
        of_server = AuditEntry.objects.filter(project=None)
        reasons = of_server.filter(action="DeleteProject").values_list("reason", flat=True)
        matches = map(_PROJECT.fullmatch, reasons)
        self.projects = {int(match[1]) for match in matches if match}
        targets = of_server.filter(action=PRUNE).values_list("target", flat=True)
        self._pruned = max([0, *(int(target) for target in targets if target.isdecimal())])

    def check_anchor(self) -> list[AuditFinding]:
        """Return a finding if more rows are missing at the beginning than announced."""
        if self.ends.anchor <= self._pruned:
            return []
        words = (
            f"the rows up to position {self.ends.anchor} were removed; "
            f"retention announced position {self._pruned or 'none'}"
        )
        return [AuditFinding("removed", words)]


def report_as_json(report: AuditReport) -> dict[str, Any]:
    """Return a report as a JSON object."""
    return {
        "check": "verify_audit",
        "intact": report.intact,
        "rows": report.rows,
        "waiting": report.waiting,
        "removedWithProjects": report.removed_with_projects,
        "anchor": {"position": report.anchor, "hash": report.anchor_hash},
        "head": {"position": report.head, "hash": report.head_hash},
        "findings": [
            {
                "kind": finding.kind,
                "position": finding.position,
                "row": finding.entry,
                "message": finding.message,
            }
            for finding in report.findings
        ],
        "moreFindings": report.more_findings,
    }
