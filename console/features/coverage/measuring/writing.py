"""Write coverage reports as text, JSON, JUnit, Cobertura, GitHub annotations or HTML."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from console.features.coverage.measuring.page import write_page
from console.features.coverage.measuring.report import percent_of
from console.features.deploy.junit import JUnitCase, clean_text, write_junit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import engine
    from console.features.coverage.measuring.report import CoverageReport


# -- text ------------------------------------------------------------------------------------------


def write_text(reports: Sequence[CoverageReport]) -> str:
    """Return the reports as lines to read."""
    blocks = ["\n".join(map(_printable, _text_lines(report))) for report in reports]
    total = percent_of(reports)
    return "\n\n".join([*blocks, f"total: {total:.1f} % of {_count_points(reports):,} points"])


def _printable(line: str) -> str:
    """Return a line without control characters, which state names may have."""
    return "".join(character if character.isprintable() else "?" for character in line)


def _count_points(reports: Sequence[CoverageReport]) -> int:
    return sum(len(report.points) for report in reports)


def _text_lines(report: CoverageReport) -> Iterator[str]:
    kinds = ", ".join(f"{kind} {got}/{total}" for kind, (got, total) in report.kinds().items())
    yield f"{report.machine}: {report.percent:.1f} %"
    yield f"  {kinds}"
    yield f"  {runs_words(report)}"
    for point in report.holes:
        yield f"  NOT REACHED {point_words(point)}"
        suggestion = report.suggestions.get(point.key)
        if suggestion is not None:
            yield f"    reach it by {suggestion}"
    for point in report.uncertain:
        yield f"  UNCERTAIN {point_words(point)}"
    for limit in report.limits:
        yield f"  NEAR A LIMIT {limit.words}"


def runs_words(report: CoverageReport) -> str:
    """Return sources and numbers of executions in words: "12 of engine.run"."""
    if not report.runs:
        return "no executions"
    return ", ".join(f"{count:,} of {source}" for source, count in sorted(report.runs.items()))


def point_words(point: engine.Point) -> str:
    """Return a point in words: "Catcher of Charge: States.ALL, to Failed"."""
    of_state = f" of {point.state}" if point.state else ""
    detail = f": {point.detail}" if point.detail else ""
    shown_target = point.target and point.kind != "Transition"
    return f"{point.kind}{of_state}{detail}" + (f", to {point.target}" if shown_target else "")


# -- JSON ------------------------------------------------------------------------------------------


def write_json(reports: Sequence[CoverageReport]) -> str:
    """Return the reports as a JSON object."""
    document = {
        "percent": round(percent_of(reports), 2),
        "machines": [_as_json(report) for report in reports],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _as_json(report: CoverageReport) -> Mapping[str, Any]:
    return {
        "machine": report.machine,
        "file": report.place or None,
        "percent": round(report.percent, 2),
        "threshold": report.threshold,
        "runs": dict(report.runs),
        "limits": [limit.as_json() for limit in report.limits],
        "points": [
            {
                "key": point.key,
                "kind": str(point.kind),
                "state": point.state or None,
                "detail": point.detail or None,
                "target": point.target or None,
                "reached": True
                if point.key in report.reached
                else (None if point in report.uncertain else False),
                "suggestion": suggestion.as_json()
                if (suggestion := report.suggestions.get(point.key))
                else None,
            }
            for point in report.points
        ],
    }


# -- JUnit -----------------------------------------------------------------------------------------


def _junit_case(report: CoverageReport, point: engine.Point) -> JUnitCase:
    """Return the test case of a point, failed if nothing reached it."""
    if point.key in report.reached:
        return JUnitCase(point.key)
    if point in report.uncertain:
        return JUnitCase(point.key, "skipped", "uncertain")
    text = str(report.suggestions.get(point.key, ""))
    return JUnitCase(point.key, "failure", f"not reached: {point_words(point)}", text)


# -- Cobertura -------------------------------------------------------------------------------------


def write_cobertura(reports: Sequence[CoverageReport]) -> str:
    """Return the reports as Cobertura: a line per state, its other points as conditions."""
    rate = percent_of(reports) / 100
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        (
            f'<coverage line-rate="{rate:.4f}" branch-rate="{rate:.4f}" version="stateyard" '
            'timestamp="0" complexity="0">'
        ),
        (
            '  <packages><package name="state machines" '
            f'line-rate="{rate:.4f}" branch-rate="{rate:.4f}" complexity="0"><classes>'
        ),
    ]
    for report in reports:
        share = f"{report.percent / 100:.4f}"
        file = _attribute(report.place or f"{report.machine}.asl.json")
        lines.append(
            f"    <class name={_attribute(report.machine)} filename={file} "
            f'line-rate="{share}" branch-rate="{share}" complexity="0"><methods/><lines>'
        )
        lines += [f"      {line}" for line in _cobertura_lines(report)]
        lines.append("    </lines></class>")
    return "\n".join([*lines, "  </classes></package></packages>", "</coverage>"])


def _cobertura_lines(report: CoverageReport) -> Iterator[str]:
    numbers = state_lines(report)
    by_line: dict[int, list[engine.Point]] = {}
    for point in report.points:
        by_line.setdefault(numbers.get(point.state, 1), []).append(point)
    for number, points in sorted(by_line.items()):
        reached = sum(point.key in report.reached for point in points)
        hits = any(p.key in report.reached for p in points if p.key == p.state or not p.state)
        branch = "false"
        if len(points) > 1:
            share = f"{100 * reached // len(points)}% ({reached}/{len(points)})"
            branch = f'true" condition-coverage="{share}'
        yield f'<line number="{number}" hits="{int(hits)}" branch="{branch}"/>'


def state_lines(report: CoverageReport) -> dict[str, int]:
    """Return state -> its line, from 1, in its file, else in the definition."""
    text = report.text or report.definition
    lines: dict[str, int] = {}
    names = {point.state for point in report.points if point.state}
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(
            r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"'{}\[\]][^:]*?))\s*:""", line
        )
        if match is None:
            continue
        name = _unescape(match[1]) if match[1] is not None else match[2] or match[3]
        if name in names:
            lines.setdefault(name, number)
    return lines


def _unescape(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _attribute(text: str) -> str:
    return quoteattr(clean_text(text))


# -- GitHub ----------------------------------------------------------------------------------------


def write_github(reports: Sequence[CoverageReport]) -> str:
    """Return GitHub workflow commands that annotate the lines of states."""
    lines = []
    for report in reports:
        numbers = state_lines(report)
        for point in report.holes:
            suggestion = report.suggestions.get(point.key)
            message = f"not reached: {point_words(point)}" + (
                f"; reach it by {suggestion}" if suggestion else ""
            )
            place = f"file={_property(report.place)},line={numbers.get(point.state, 1)},"
            title = f"title={_property(f'Coverage of {report.machine}')}"
            lines.append(f"::warning {place if report.place else ''}{title}::{_data(message)}")
    lines.append(f"::notice title=Coverage::{percent_of(reports):.1f} %25 of all points")
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


WRITERS: dict[str, Callable[[Sequence[CoverageReport]], str]] = {
    "text": write_text,
    "json": write_json,
    "junit": lambda reports: write_junit(
        (report.machine, [_junit_case(report, point) for point in report.points])
        for report in reports
    ),
    "cobertura": write_cobertura,
    "github": write_github,
    "html": write_page,
}
"""Format -> the function that writes it."""
