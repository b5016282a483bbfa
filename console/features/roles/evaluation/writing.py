"""Write role reports as text, JSON or JUnit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.features.deploy.junit import JUnitCase, write_junit
from console.features.roles.evaluation.patterns import HOLE
from console.features.roles.evaluation.verdicts import Decision, RoleVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from console.features.roles.evaluation.reports import RoleReport

_HEADINGS = (
    (RoleVerdict.MISSING, "missing"),
    (RoleVerdict.DENIED, "denied"),
    (RoleVerdict.UNKNOWN, "unknown"),
    (RoleVerdict.ALLOWED, "allowed"),
)


def resource_words(resource: str) -> str:
    """Return a resource for display: ``…`` in place of each hole."""
    return "a resource of the call" if resource == HOLE else resource.replace(HOLE, "…")


def decision_words(decision: Decision) -> str:
    """Return a decision as one line, without its verdict."""
    need = decision.need
    where = f"{need.state}: " if need.state else ""
    if not need.action:
        return f"{where}{need.call}: {'; '.join(decision.reasons)}"
    words = f"{where}{need.action} on {resource_words(need.resource)} ({need.call})"
    if decision.verdict is RoleVerdict.DENIED:
        words += f", by {decision.place}"
    if decision.verdict is RoleVerdict.UNKNOWN:
        words += f": {'; '.join(decision.reasons)}"
    return words


def grouped_words(decisions: Iterable[Decision]) -> list[str]:
    """Return a line per state, resource and outcome, with all its actions."""
    groups: dict[tuple[str, str, str, str], list[Decision]] = {}
    for decision in decisions:
        need = decision.need
        ending = decision_words(decision).partition(f" ({need.call})")[2]
        key = need.state, need.resource, need.call, ending if need.action else need.action
        groups.setdefault(key, []).append(decision)
    lines = []
    for group in groups.values():
        need = group[0].need
        actions = ", ".join(decision.need.action for decision in group)
        words = decision_words(group[0])
        lines.append(words.replace(need.action, actions, 1) if need.action else words)
    return lines


def write_text(reports: Sequence[RoleReport]) -> str:
    """Return the reports as lines to read."""
    return "\n\n".join("\n".join(_lines(report)) for report in reports)


def _lines(report: RoleReport) -> list[str]:
    counts = [f"{len(report.of_verdict(verdict))} {words}" for verdict, words in _HEADINGS]
    lines = [f"{report.name}: {', '.join(counts)}, {report.unused_count} never used"]
    lines += [f"  not read: {gap}" for gap in (report.role.gaps if report.role else ())]
    for verdict, words in _HEADINGS[:3]:
        lines += [f"  {words}: {line}" for line in grouped_words(report.of_verdict(verdict))]
    for unused in report.unused:
        lines.append(f"  never used: {unused.action} on {', '.join(unused.resources)}")
    return lines


def write_json(reports: Sequence[RoleReport]) -> str:
    """Return the reports as a JSON list."""
    return json.dumps([as_json(report) for report in reports], indent=2, ensure_ascii=False)


def as_json(report: RoleReport) -> Mapping[str, Any]:
    """Return a report as a JSON value."""
    return {
        "name": report.name,
        "role": report.role.name if report.role else None,
        "gaps": list(report.role.gaps) if report.role else [],
        "permissions": [
            {
                "state": decision.need.state,
                "call": decision.need.call,
                "action": decision.need.action,
                "resource": resource_words(decision.need.resource),
                "verdict": str(decision.verdict),
                "statement": decision.place,
                "reasons": list(decision.reasons),
            }
            for decision in report.decisions
        ],
        "neverUsed": [
            {"statement": each.place, "action": each.action, "resources": list(each.resources)}
            for each in report.unused
        ],
    }


def _junit_case(report: RoleReport, decision: Decision) -> JUnitCase:
    need = decision.need
    name, words = (
        f"{need.state or report.name}: {need.action or need.call}",
        decision_words(decision),
    )
    if decision.fails:
        return JUnitCase(name, "failure", str(decision.verdict), words)
    is_unknown = decision.verdict is RoleVerdict.UNKNOWN
    return JUnitCase(name, "system-out", text=words) if is_unknown else JUnitCase(name)


WRITERS: dict[str, Callable[[Sequence[RoleReport]], str]] = {
    "text": write_text,
    "json": write_json,
    "junit": lambda reports: write_junit(
        (report.name, [_junit_case(report, decision) for decision in report.decisions])
        for report in reports
    ),
}
"""Format -> the function that writes it."""
