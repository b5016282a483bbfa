"""Write coverage reports as a self-contained HTML page with the graph of each state machine."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

import engine
from console.features.coverage.measuring.report import percent_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.features.coverage.measuring.report import CoverageReport

_LONGEST = 34  # characters of a name in a box
_MOST_WAYS = 250
"""Maximum number of drawn transitions: Graphviz takes minutes for a thousand."""
_POINTS = 72.0  # an inch of Graphviz
_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b2430; --dim: #5b6675; --line: #d5dbe3;
  --good: #1a7f45; --good-back: #e6f5ec; --part: #8a5a00; --part-back: #fdf3dd; --bad: #b3261e;
  --bad-back: #fdeceb; }
@media (prefers-color-scheme: dark) { :root { --back: #12171e; --text: #e7ecf3; --dim: #9aa6b5;
  --line: #33404f; --good: #5fd08d; --good-back: #12301f; --part: #f0bd58; --part-back: #33280f;
  --bad: #ff8a80; --bad-back: #3a1917; } }
body { margin: 0 auto; max-width: 1200px; padding: 24px 16px; background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; } h2 { font-size: 18px; margin: 32px 0 4px; overflow-wrap: anywhere; }
p { margin: 4px 0; } .dim { color: var(--dim); } .bad { color: var(--bad); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; margin: 12px 0; }
table { border-collapse: collapse; width: 100%; min-width: 640px; }
th, td { text-align: left; vertical-align: top; padding: 6px 12px; overflow-wrap: anywhere;
  border-top: 1px solid var(--line); } thead th { border-top: 0; font-weight: 600; }
code { font: 13px ui-monospace, monospace; white-space: pre-wrap; }
svg { display: block; margin: 8px auto; overflow: visible; }
svg text { font: 13px system-ui, sans-serif; fill: var(--text); text-anchor: middle; }
svg .kind { font-size: 11px; fill: var(--dim); }
.box { stroke-width: 1.5; fill: var(--good-back); stroke: var(--good); }
.box.part { fill: var(--part-back); stroke: var(--part); }
.box.missing { fill: var(--bad-back); stroke: var(--bad); stroke-dasharray: 5 4; }
.group, .into { fill: none; stroke: var(--line); }
.into { stroke: var(--dim); stroke-dasharray: 1 4; } .way { fill: none; stroke: var(--good);
  stroke-width: 1.5; } .way.missing { stroke: var(--bad); stroke-dasharray: 5 4; }
.way.uncertain { stroke: var(--dim); } .tip { fill: var(--dim); }
"""


def write_page(reports: Sequence[CoverageReport]) -> str:
    """Return the reports as an HTML page."""
    total = percent_of(reports)
    parts = "\n".join(part for report in reports for part in _machine(report))
    title = f"Coverage: {total:.1f} %"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        '<p class="dim">Green: reached. Amber: reached, with points that are not. '
        "Red and dashed: not reached.</p>\n"
        f"{parts}\n</body>\n</html>\n"
    )


def _machine(report: CoverageReport) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(report.machine)}: {report.percent:.1f} %</h2>"
    if report.falls_short:
        yield f'<p class="bad">Wanted at least {report.threshold:g} %.</p>'
    runs = ", ".join(f"{count:,} of {source}" for source, count in sorted(report.runs.items()))
    yield f'<p class="dim">Executions: {escape(runs or "none")}</p>'
    kinds = ", ".join(f"{kind} {got} of {all_}" for kind, (got, all_) in report.kinds().items())
    yield f"<p>{escape(kinds)}</p>"
    ways = [point for point in report.points if point.target]
    if len(ways) > _MOST_WAYS:
        yield (
            f'<p class="dim">The graph is not drawn: it has {len(ways):,} transitions, '
            f"more than {_MOST_WAYS}.</p>"
        )
    elif graph := _graph(report, ways):
        yield f'<div class="scroll" tabindex="0" role="region" aria-label="Graph">{graph}</div>'
    yield from _holes(report)
    yield "</section>"


def _holes(report: CoverageReport) -> Iterator[str]:
    if not report.holes and not report.uncertain:
        yield "<p>Every point is reached.</p>"
        return
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Points that are not reached">'
    heads = "".join(
        f'<th scope="col">{head}</th>' for head in ("Not reached", "State", "Detail", "Reach it by")
    )
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for point in report.holes:
        words = str(report.suggestions.get(point.key, "-"))
        yield _table_row(point, str(point.kind), f"<code>{escape(words)}</code>")
    for point in report.uncertain:
        yield _table_row(point, f"{point.kind} (uncertain)", "The histories do not tell.")
    yield "</tbody></table></div>"


def _table_row(point: engine.Point, kind: str, last: str) -> str:
    cells = [escape(text or "-") for text in (kind, point.state, point.detail)]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in [*cells, last]) + "</tr>"


# -- the graph -------------------------------------------------------------------------------------


def _graph(report: CoverageReport, ways: Sequence[engine.Point]) -> str:
    """Return the graph as SVG, "" if there is no layout. Graphviz gets ids, never texts."""
    graph = engine.build_graph(engine.parse_stored(report.definition, report.kind))
    drawn = _lay_out(graph, ways)
    if not drawn:
        return ""
    _, _, width, height = (float(part) for part in drawn["bb"].split(","))
    parts = [
        (
            f'<svg role="img" aria-label="Graph of {escape(report.machine)}" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            'markerHeight="7" orient="auto"><path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>'
        ),
    ]
    parts += [_shape(report, graph, thing, height) for thing in drawn.get("objects", ())]
    for edge in drawn.get("edges", ()):
        name = edge.get("id", "")
        if name.startswith("w"):
            parts.append(_way_path(report, ways[int(name[1:])], edge["pos"], height))
        else:  # from a Parallel or Map to its first states
            parts.append(f'<path class="into" d="{_curve_path(edge["pos"], height)}"/>')
    return "\n".join([*parts, "</svg>"])


def _lay_out(graph: engine.Graph, ways: Sequence[engine.Point]) -> Mapping[str, Any]:
    """Return Graphviz's layout, {} without Graphviz."""
    try:
        import pygraphviz
    except ImportError:
        return {}
    bounds = "nslimit=2; nslimit1=2"  # of steps: without, a hundred states may take minutes
    lines = [f"digraph {{ {bounds}; compound=true; nodesep=0.35; ranksep=0.45; node [shape=box];"]
    lines += _block(graph, "")
    for number, way in enumerate(ways):
        source, target = graph.by_name[way.state], graph.by_name[way.target]
        lines.append(f'{source} -> {target} [id="w{number}"];')
    lines.append("}")
    layout = pygraphviz.AGraph(string="\n".join(lines)).draw(format="json0", prog="dot")
    answer: Mapping[str, Any] = json.loads(layout)
    return answer


def _block(graph: engine.Graph, owner: str) -> Iterator[str]:
    """Yield the blocks of a Parallel or Map, each as a cluster."""
    for group in (group for group in graph.groups if group.owner == owner):
        if owner:
            yield f"subgraph cluster_{group.id} {{ margin=14;"
        for node in (node for node in graph.nodes if node.group == group.id):
            width = max(len(node.name[:_LONGEST]) * 7.6 + 24, 90) / _POINTS
            yield f'{node.id} [width={width:.3f}, height=0.6, fixedsize=true, label=""];'
            yield from _block(graph, node.id)
        if owner:
            yield "}"
            yield f'{owner} -> {group.start} [id="g{group.id}"];'


def _shape(
    report: CoverageReport, graph: engine.Graph, thing: Mapping[str, Any], height: float
) -> str:
    if "nodes" in thing or "pos" not in thing:
        west, low, east, high = (float(part) for part in thing["bb"].split(","))
        size = f'width="{east - west:.1f}" height="{high - low:.1f}"'
        return f'<rect class="group" x="{west:.1f}" y="{height - high:.1f}" {size} rx="8"/>'
    node = graph.by_id[thing["name"]]
    x, y = (float(part) for part in thing["pos"].split(","))
    wide, tall = float(thing["width"]) * _POINTS, float(thing["height"]) * _POINTS
    points = [point for point in report.points if point.state == node.name]
    holes = [point for point in points if point in report.holes]
    status = "missing" if node.name not in report.reached else "part" if holes else "reached"
    name = node.name if len(node.name) <= _LONGEST else f"{node.name[: _LONGEST - 1]}…"
    title = f"{node.name}: {len(points) - len(holes)} of {len(points)} points"
    top = height - y - tall / 2
    return (
        f"<g><title>{escape(title)}</title>"
        f'<rect class="box {status}" x="{x - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" '
        f'height="{tall:.1f}" rx="8"/><text x="{x:.1f}" y="{top + 19:.1f}">{escape(name)}</text>'
        f'<text class="kind" x="{x:.1f}" y="{top + 34:.1f}">{node.type}</text></g>'
    )


def _way_path(report: CoverageReport, point: engine.Point, pos: str, height: float) -> str:
    status = "reached" if point.key in report.reached else "missing"
    if point in report.uncertain:
        status = "uncertain"
    title = escape(f"{point.kind}: {point.detail}")
    path = _curve_path(pos, height)
    shown = f'<path class="way {status}" d="{path}" marker-end="url(#tip)">'
    return f"{shown}<title>{title}</title></path>"


def _curve_path(pos: str, height: float) -> str:
    """Return SVG path data of a Graphviz curve, whose y axis points up."""
    places = [part.split(",") for part in pos.removeprefix("e,").split()]
    tip, first, *rest = [f"{float(x):.1f},{height - float(y):.1f}" for x, y in places]
    return f"M{first} C{' '.join(rest)} L{tip}"
