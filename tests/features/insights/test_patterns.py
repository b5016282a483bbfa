"""The last executions by states: grid, insights, and what was never tried."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import engine
from console.features.insights import past_executions
from console.models import Execution, HistoryEvent, StateMachine, Timer
from console.store.machines import machines
from console.web.execution import steps
from console.web.history.traces import details_of, open_trace
from tests.console.store.helpers import create, drain, ended, function, start
from tests.console.web.helpers import MARKUP, markup, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

MIXED: dict[str, Any] = {
    "StartAt": "Sort",
    "States": {
        "Sort": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.k", "NumericEquals": 1, "Next": "Each"},
                {"Variable": "$.k", "NumericEquals": 2, "Next": "Bad"},
                {"Variable": "$.k", "NumericEquals": 3, "Next": "Last"},
                {"Variable": "$.k", "NumericEquals": 4, "Next": "Last"},
            ],
            "Default": "Both",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {
                "StartAt": "One",
                "States": {
                    "One": {
                        "Type": "Choice",
                        "Choices": [{"Variable": "$", "NumericGreaterThan": 1, "Next": "Wrong"}],
                        "Default": "Right",
                    },
                    "Wrong": {"Type": "Fail", "Error": "Wrong"},
                    "Right": {"Type": "Pass", "End": True},
                },
            },
            "Retry": [{"ErrorEquals": ["Wrong"], "MaxAttempts": 0}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Last"}],
            "Next": "Last",
        },
        "Bad": {"Type": "Fail", "Error": MARKUP},
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "L", "States": {"L": {"Type": "Wait", "Seconds": 3600, "End": True}}}
            ],
            "Next": "Last",
        },
        "Last": {"Type": "Succeed"},
    },
}
INPUTS: list[Any] = [
    {"k": 1, "items": [0, 1]},
    {"k": 1, "items": [0, 5, 1]},
    {"k": 2},
    {"k": 3},
    {"k": 0},
]


def mixed(project: Project) -> StateMachine:
    """Return a machine with executions of five fates."""
    machine = create(project, MIXED)
    for number, data in enumerate(INPUTS):
        drain(start(machine, data, f"run-{number}"))
    return machine


def shift(execution: Execution, state: str, by_ms: int) -> None:
    """Let an execution have left a state later than it did."""
    events = HistoryEvent.objects.filter(execution_id=execution.pk)
    exit_id = events.get(state=state, type__endswith="Exited").event_id
    for event in events.filter(event_id__gte=exit_id):
        HistoryEvent.objects.filter(execution_id=execution.pk, event_id=event.event_id).update(
            at_ms=event.at_ms + by_ms
        )


@pytest.mark.postgres_too
def test_a_cell_says_what_the_page_of_its_execution_says(project: Project) -> None:
    """Status and visits of every state, in all fates, are those of the execution's own graph."""
    runs = past_executions.last_executions(mixed(project), 10)
    assert [run.execution.name for run in runs] == [f"run-{n}" for n in (4, 3, 2, 1, 0)]
    statuses = set()
    for run in runs:
        with open_trace(run.execution) as trace:
            for summary in steps.step_summaries(trace).values():
                cell = run.cells.get(summary.node.name)
                assert (cell.visits if cell else 0) == summary.visits
                if cell is not None and summary.visits:
                    statuses.add(cell.status)
                    assert cell.label == summary.status, summary.node.name
    assert statuses >= {"succeeded", "failed", "caught", "running"}


@pytest.mark.parametrize("tab", ["grid", "insights"])
def test_a_page_costs_the_same_for_many(project: Project, client: Client, tab: str) -> None:
    """Three queries of its own at first, and what is known is not read again."""
    machine = create(project, {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    counts = []
    for number in (1, 12):
        for _ in range(number):
            drain(start(machine))
        with CaptureQueriesContext(connection) as seen:
            text(client.get(f"/machines/machine/{tab}/"))
        counts.append(len(seen))
        assert any("historyevent" in query["sql"] for query in seen.captured_queries)
    assert counts[0] == counts[1] <= 15
    with CaptureQueriesContext(connection) as seen:
        text(client.get(f"/machines/machine/{tab}/"))
    assert not any("historyevent" in query["sql"] for query in seen.captured_queries)


def test_long_histories_make_fewer_columns(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest always stays; a page reads only so many events."""
    machine = create(project, {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    for _ in range(5):
        drain(start(machine))
    monkeypatch.setattr(past_executions, "MOST_EVENTS", 9)
    assert len(past_executions.last_executions(machine, 25)) == 2
    monkeypatch.setattr(past_executions, "MOST_EVENTS", 1)
    assert len(past_executions.last_executions(machine, 25)) == 1


@pytest.mark.postgres_too
def test_an_outlier_is_marked_by_a_sign_and_a_word(project: Project, client: Client) -> None:
    """Of seven executions the one that took a minute in a state; each cell leads to its step."""
    machine = create(project, {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    for number in range(7):
        execution = drain(start(machine, None, f"run-{number}"))
        if number == 3:
            shift(execution, "P", 60_000)
    shown = text(client.get("/machines/machine/grid/"))
    assert shown.count("unusually long") == 2  # as a tooltip, and for who does not see it
    link = "/machines/machine/executions/run-3/?step=P"
    (label,) = re.findall(rf'<a href="{re.escape(link)}"\s+title="([^"]*)"', shown)
    assert label == "run-3, succeeded, 1 min 00 s, unusually long"
    assert shown.count("▲") == 2  # the cell, and the legend


@pytest.mark.postgres_too
def test_iterations_side_by_side_take_no_longer_than_their_map(
    project: Project, client: Client
) -> None:
    """The grid counts the time in which several visits of a state went on once, and says so."""
    nap = {"StartAt": "In", "States": {"In": {"Type": "Wait", "Seconds": 2, "End": True}}}
    over = {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": nap, "End": True}
    execution = start(create(project, {"StartAt": "M", "States": {"M": over}}), [1, 2, 3, 4])
    for _ in range(3):
        drain(execution)
        Timer.objects.update(due_ms=0)
    times = {"WaitStateEntered": (0, 0, 2, 2), "WaitStateExited": (2, 2, 4, 4)}
    times |= {"MapStateEntered": (0,), "MapStateExited": (4,)}
    for kind, seconds in times.items():
        events = HistoryEvent.objects.filter(execution_id=execution.pk, type=kind)
        numbers = events.order_by("event_id").values_list("event_id", flat=True)
        for number, second in zip(numbers, seconds, strict=True):
            events.filter(event_id=number).update(at_ms=execution.start_ms + second * 1000)
    shown = " ".join(text(client.get("/machines/machine/grid/")).split())
    assert "succeeded, 4.0 s, 4 visits" in shown
    assert shown.count('<td class="number">4.0 s</td>') == 2  # the Map, and what is inside of it
    assert "overlapping visits count once" in shown


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([5, 5, 5, 5], None),
        ([1000] * 9 + [1100], 1501),
        ([10] * 20, 111),
        ([1] * 10 + [1000] * 10, 2499),
    ],
)
def test_what_is_unusual_depends_on_what_is_usual(times: list[int], expected: int | None) -> None:
    """Two usual lengths are no outliers, nor are differences that nobody would notice."""
    assert past_executions.unusual_duration(times) == expected


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (95, 95), (100, 100), (1, 1)])
def test_a_percentile_is_one_of_the_times(percent: int, expected: int) -> None:
    """The nearest rank; nothing of nothing."""
    assert past_executions.percentile(list(range(100, 0, -1)), percent) == expected
    assert past_executions.percentile([], percent) is None


def test_states_of_older_definitions_are_told_apart(project: Project, client: Client) -> None:
    """The grid keeps their line, the insights leave those executions out."""
    machine = mixed(project)
    new = {"StartAt": "New", "States": {"New": {"Type": "Pass", "End": True}}}
    machine = machines.update_machine(machine, definition=json.dumps(new))
    shown = text(client.get("/machines/machine/grid/"))
    assert "not in the current definition" in shown
    drain(start(machine))
    shown = text(client.get("/machines/machine/insights/"))
    assert "1 of 1" in shown
    assert "Everything is covered" in shown


def choices(shown: str) -> tuple[dict[str, str], str]:
    """Return key -> words of the definitions to choose from, and the key of the chosen one."""
    select = shown.partition('id="definition"')[2].partition("</select>")[0]
    options = re.findall(r'<option value="(\w+)"( selected)?>\s*(.*?)\s*</option>', select)
    return {key: words for key, _, words in options}, next(key for key, on, _ in options if on)


def test_insights_of_an_earlier_definition(project: Project, client: Client) -> None:
    """After a save the newest one that ran is shown, and says so; each can be chosen."""
    machine = mixed(project)
    assert 'id="definition"' not in text(client.get("/machines/machine/insights/")), "only one"
    new = {"StartAt": "New", "States": {"New": {"Type": "Pass", "End": True}}}
    machine = machines.update_machine(machine, definition=json.dumps(new))
    answer: Any = client.get("/machines/machine/insights/")
    shown = markup(answer)
    revisions, chosen = choices(text(answer))
    assert list(revisions.values()) == [
        "Revision 2 (current): 0 executions",
        "Revision 1: 5 executions",
    ]
    assert revisions[chosen] == "Revision 1: 5 executions"
    assert "The current definition has no executions yet." in shown
    assert "These figures cover revision 1, saved" in shown
    assert len(answer.context["runs"]) == 5
    assert {insight.node.name for insight in answer.context["insights"]} > {"Sort", "Each"}
    current = next(iter(revisions))
    empty = text(client.get(f"/machines/machine/insights/?definition={current}"))
    assert "No executions of revision 2 (current) yet" in empty
    drain(start(machine))
    answer = client.get("/machines/machine/insights/")
    assert choices(text(answer))[1] == current
    assert len(answer.context["runs"]) == 1
    answer = client.get(f"/machines/machine/insights/?definition={chosen}&last=50")
    assert choices(text(answer))[1] == chosen
    assert len(answer.context["runs"]) == 5
    assert "of an earlier definition, saved" in markup(answer)
    unknown: Any = client.get("/machines/machine/insights/?definition=other")
    assert len(unknown.context["runs"]) == 1


def test_a_choice_of_definitions_costs_two_queries(
    project: Project, client: Client, django_assert_max_num_queries: Any
) -> None:
    """However many definitions there are."""
    machine = mixed(project)
    for name in ("A", "B", "C", "D"):
        new = {"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}}
        machine = machines.update_machine(machine, definition=json.dumps(new))
        drain(start(machine))
    client.get("/machines/machine/insights/")
    with django_assert_max_num_queries(14):
        shown = text(client.get("/machines/machine/insights/"))
    assert list(choices(shown)[0].values()) == [
        "Revision 5 (current): 1 execution",
        *(f"Revision {number}: 1 execution" for number in (4, 3, 2)),
        "Revision 1: 5 executions",
    ]


def test_insights_draw_the_ways_into_branches_as_taken(project: Project, client: Client) -> None:
    """As the graph of an execution does: into a branch that began, out of one that ended."""
    inner = {"Type": "Pass", "End": True}
    fails = {"Type": "Fail", "Error": "E"}
    branches = [{"StartAt": name, "States": {name: inner}} for name in ("L", "R")]
    branches.append({"StartAt": "No", "States": {"No": fails}})
    rule = {"Variable": "$.k", "NumericEquals": 1, "Next": "Both"}
    states = {
        "Sort": {"Type": "Choice", "Choices": [rule], "Default": "Other"},
        "Both": {"Type": "Parallel", "Branches": branches, "End": True},
        "Other": {"Type": "Parallel", "Branches": [{"StartAt": "O", "States": {"O": inner}}]},
    }
    states["Other"]["End"] = True
    drain(start(create(project, {"StartAt": "Sort", "States": states}), {"k": 1}))
    answer: Any = client.get("/machines/machine/insights/")
    graph, taken = answer.context["graph"], answer.context["taken"]
    group = {graph.by_id[each.start].name: each.id for each in graph.groups}
    ids = graph.by_name
    expected = {f"start-{ids['Sort']}", *(f"in-{group[name]}" for name in ("L", "R", "No"))}
    expected |= {f"{ids['Sort']}-{ids['Both']}", f"out-{group['L']}"}
    assert expected <= taken
    unused = {f"in-{group['O']}", f"out-{group['No']}", f"{ids['Other']}-end", f"{ids['Both']}-end"}
    assert not unused & taken
    assert text(answer).count("edge in taken") == 3


def test_the_grid_names_its_columns_and_marks_a_changed_definition(
    project: Project, client: Client
) -> None:
    """Each heading has name and start; a row has the revisions, with a link to what changed."""
    machine = mixed(project)
    grid = markup(client.get("/machines/machine/grid/"))
    assert grid.count('class="column-head"') == 5
    heading = grid.partition('class="column-head"')[2].partition("</a>")[0]
    assert "<b><bdi>run-0</bdi></b>" in heading
    assert "<time datetime=" in heading
    assert ">Revision<" not in grid
    new = {"StartAt": "New", "States": {"New": {"Type": "Pass", "End": True}}}
    machine = machines.update_machine(machine, definition=json.dumps(new))
    for name in ("new-1", "new-2", "new-3"):
        drain(start(machine, name=name))
    answer: Any = client.get("/machines/machine/grid/")
    assert [(span.columns, span.first.name) for span in answer.context["grid"].spans] == [
        (5, "run-0"),
        (3, "new-1"),
    ]
    shown = markup(answer)
    row = shown.partition('<tr class="definitions">')[2].partition("</tr>")[0]
    assert re.findall(r'<td colspan="(\d)"', row) == ["5", "3"]
    assert re.sub(r"<[^>]*>", " ", row).split() == (
        ["Revision", "1", "2", ":", "view", "changes", "(current)"]
    )
    address = re.search(r'href="(/machines/machine/diff/[^"]*)"', text(answer))
    assert address is not None
    assert client.get(address[1]).status_code == 200
    lines = answer.context["grid"].lines
    assert [cell.changed for cell in lines[0].cells] == [False] * 5 + [True, False, False]


def test_insights_look_at_the_newest_only(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A definition that no recent execution has is not looked for among a million old ones."""
    machine = mixed(project)
    monkeypatch.setattr(past_executions, "LOOKED_AT", 2)
    runs = past_executions.last_executions(machine, 25, definition=machine.definition_id)
    assert [run.execution.name for run in runs] == ["run-4", "run-3"]


def never(shown: str) -> set[tuple[str, str, str]]:
    """Return (kind, state, when) of what a page says was never tried."""
    table = shown.partition('id="uncovered-title"')[2].partition("</table>")[0]
    table = re.sub(r"\s*(<[^>]*>)\s*", r"\1", table)
    rows = re.findall(r"<tr><td>(.*?)</td>(.*?)</td><td[^>]*>(.*?)</td></tr>", table)
    return {tuple(re.sub(r"<[^>]*>", "", part) for part in row) for row in rows}


def test_insights_count_and_name_what_was_never_tried(project: Project, client: Client) -> None:
    """How often each state ran and failed; states, rules, Catchers and Retriers without a use."""
    mixed(project)
    shown = text(client.get("/machines/machine/insights/"))
    row = re.search(
        r'<tr id="state-n\d+">\s*<td class="name"><bdi>One</bdi>.*?</tr>', shown, re.DOTALL
    )
    assert row is not None
    assert re.sub(r"<[^>]*>|\s+", " ", row[0]).split()[:6] == ["One", "Choice", "2", "of", "5", "5"]
    assert never(shown) == {
        ("Choice rule", "Sort", "$.k == 4"),
        ("Transition", "Both", "to Last"),
        ("Map size", "Each", "0 items"),
        ("Map size", "Each", "1 item"),
    }
    assert client.get("/machines/machine/insights/").content.decode().count(MARKUP) == 0


def test_what_was_not_tried_is_named(project: Project, client: Client) -> None:
    """With a single execution that takes one way, everything else is listed."""
    machine = create(project, MIXED)
    drain(start(machine, {"k": 1, "items": [0]}))
    assert never(text(client.get("/machines/machine/insights/"))) == {
        ("State", "Bad", "-"),
        ("State", "Both", "-"),
        ("State", "L", "-"),
        ("State", "Wrong", "-"),
        ("Choice rule", "Sort", "$.k == 2"),
        ("Choice rule", "Sort", "$.k == 3"),
        ("Choice rule", "Sort", "$.k == 4"),
        ("Default", "Sort", "default"),
        ("Choice rule", "One", "$ > 1"),
        ("Catcher", "Each", "States.ALL"),
        ("Retrier", "Each", "Wrong, exhausted"),
        ("Transition", "Both", "to Last"),
        ("Map size", "Each", "0 items"),
        ("Map size", "Each", "many items"),
    }


def test_insights_read_without_payloads_what_whole_histories_tell(
    project: Project, client: Client
) -> None:
    """The page and ``stateyard coverage`` name the same points."""
    machine = mixed(project)
    reader = engine.CoverageReader(engine.parse(machine.definition.text))
    reached: set[str] = set()
    for execution in Execution.objects.all():
        rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
        reached |= reader.read(
            engine.Event(
                row.event_id, row.previous, row.at_ms, row.type, details_of(row.details), row.state
            )
            for row in rows
        ).keys
    holes = [point for point in reader.points if point.key not in reached]
    assert never(text(client.get("/machines/machine/insights/"))) == {
        (str(point.kind), point.state, point.detail or "-") for point in holes
    }


def test_ways_that_a_history_does_not_tell_apart_are_unknown(
    project: Project, client: Client
) -> None:
    """Two rules with one target, which ask for the time: neither covered nor missing."""
    rules = [
        {"Variable": "$$.State.EnteredTime", "StringGreaterThan": text, "Next": "End"}
        for text in ("1", "2")
    ]
    states = {"Now": {"Type": "Choice", "Choices": rules}, "End": {"Type": "Succeed"}}
    drain(start(create(project, {"StartAt": "Now", "States": states}), {}))
    shown = text(client.get("/machines/machine/insights/"))
    assert never(shown) == set()
    assert "Covered, except for 2 unknown" in shown
    assert "Everything is covered" not in shown
    unknown = shown.partition("Unknown: 2")[2]
    assert "StringGreaterThan" not in unknown
    assert unknown.count("$$.State.EnteredTime > ") == 2


def test_children_of_a_distributed_map_count_for_its_states(
    project: Project, client: Client, worker: object
) -> None:
    """They run elsewhere: the grid says so, the insights count them there."""
    del worker
    inner = {
        "StartAt": "Big?",
        "States": {
            "Big?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "NumericGreaterThan": 5, "Next": "Big"}],
                "Default": "Small",
            },
            "Big": {"Type": "Pass", "End": True},
            "Small": {"Type": "Pass", "End": True},
        },
    }
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    state = {"Type": "Map", "ItemProcessor": {"ProcessorConfig": config, **inner}, "End": True}
    create(project, {"StartAt": "M", "States": {"M": state}})
    ended(start(StateMachine.objects.get(), [1, 2, 3], "run"))
    shown = text(client.get("/machines/machine/insights/"))
    assert never(shown) == {("State", "Big", "-"), ("Choice rule", "Big?", "$ > 5")}
    assert "show its last 3 child executions" in shown
    assert "3 of 3" in shown
    grid = text(client.get("/machines/machine/grid/"))
    assert grid.count("runs in child executions") == 3


def test_pages_of_a_machine_without_executions_say_so(project: Project, client: Client) -> None:
    """Both lead on to a first execution; a missing function is no reason to fail."""
    create(project, {"StartAt": "T", "States": {"T": {**function("x"), "End": True}}})
    assert "No executions yet" in text(client.get("/machines/machine/grid/"))
    assert "No executions yet" in text(client.get("/machines/machine/insights/"))
    assert text(client.get("/machines/machine/grid/?last=nonsense"))
