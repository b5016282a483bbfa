"""X1: the comparison of two executions names exactly what differs."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.features.compare.compare import ComparedRow, ComparedState, diff_field
from console.models import HistoryEvent
from console.store.machines import machines
from tests.console.store.helpers import PASS, ROLE, create, drain, one, start
from tests.console.web.helpers import CHAIN, MARKUP, markup, page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project

ORDERS: dict[str, Any] = {
    "StartAt": "Look",
    "States": {
        "Look": {"Type": "Pass", "Next": "X"},
        "X": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.amount", "NumericGreaterThan": 100, "Next": "Refuse"}],
            "Default": "Ship",
        },
        "Refuse": {"Type": "Fail", "Error": "TooLarge"},
        "Ship": {"Type": "Pass", "End": True},
    },
}


def ask(client: Client, a: Execution, b: Execution) -> Any:
    """Return the page that compares two executions."""
    return client.get(f"/compare/?{urlencode({'a': a.arn, 'b': b.arn})}")


def ways(shown: str) -> list[str]:
    """Return where A and B went, in words."""
    part = shown.partition('id="divergence"')[2].partition("</ul>")[0]
    lines = re.findall(r"<li>(.*?)</li>", part, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", html.unescape(line)).split()) for line in lines]


def test_iterations_side_by_side_count_once(project: Project, client: Client) -> None:
    """The duration of a state is that of its row among the steps, not a sum of its visits."""
    inner = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    machine = create(project, one("M", Type="Map", ItemProcessor=inner))
    a, b = (drain(start(machine, [1, 2, 3], name=name)) for name in "ab")
    exits = HistoryEvent.objects.filter(execution_id=a.pk, type="PassStateExited")
    assert exits.update(at_ms=a.start_ms + 2_000) == 3
    row = next(each for each in ask(client, a, b).context["rows"] if each.name == "P")
    steps = client.get(page(a, "?view=steps")).context["graph"].painting.summaries.values()
    assert row.a.spent == next(each.took_ms for each in steps if each.node.name == "P")
    assert 1_900 <= row.a.spent <= 2_000


def test_x1_one_field_of_the_input_sends_them_different_ways(
    project: Project, client: Client
) -> None:
    """The page names the Choice, where each went, and exactly the field."""
    machine = create(project, ORDERS)
    a = drain(start(machine, {"id": 1, "amount": 500}, name="large"))
    b = drain(start(machine, {"id": 1, "amount": 5}, name="small"))
    answer = ask(client, a, b)
    shown = markup(answer)
    assert "The paths diverge at Choice<bdi>X</bdi>: rule 1 against Default" in shown
    assert ways(shown) == [
        "A continued to Refuse by rule 1 $.amount > 100 View step in A",
        "B continued to Ship by Default View step in B",
    ]
    assert f'href="{page(a)}?step=X&visit=1"' in text(answer), "the step that decided"
    assert f'href="{page(a)}?step=Refuse&visit=1"' in text(answer), "and the one it led to"
    (difference,) = answer.context["diffs"][0].differences
    assert (difference.path, difference.a, difference.b, difference.kind) == (
        "amount",
        "500",
        "5",
        "changed",
    )
    differing = {row.name for row in answer.context["rows"] if row.differs}
    assert differing == {"Refuse", "Ship"}
    assert ask(client, b, a).context["divergence"].a.to == "Ship"


def test_paths_that_end_or_stay_together(project: Project, client: Client) -> None:
    """The same path says so; one that has not begun entered no state."""
    machine = create(project, ORDERS)
    a, b = (drain(start(machine, {"amount": 1}, name=name)) for name in "ab")
    assert "Both took the same path" in text(ask(client, a, b))
    nap = create(project, CHAIN, "nap")
    c, d = (start(nap, name=name) for name in "cd")
    drain(c)
    shown = markup(ask(client, c, d))
    assert "The paths diverge at the first state" in shown
    assert ways(shown) == ["A began with First", "B entered no state"]


def test_branches_are_compared_one_by_one(project: Project, client: Client) -> None:
    """The order in which branches happened to run is no difference; a way inside one is."""
    inner = {**ORDERS, "States": {**ORDERS["States"], "Refuse": {"Type": "Pass", "End": True}}}
    other = {"StartAt": "Else", "States": {"Else": {"Type": "Pass", "End": True}}}
    both = {"Type": "Parallel", "Branches": [inner, other], "End": True}
    machine = create(project, {"StartAt": "Both", "States": {"Both": both}})
    a = drain(start(machine, {"amount": 1}, name="a"))
    b = drain(start(machine, {"amount": 1}, name="b"))
    c = drain(start(machine, {"amount": 999}, name="c"))
    assert ask(client, a, b).context["divergence"] is None
    parting = ask(client, a, c).context["divergence"]
    assert (parting.at, parting.line) == ("X", "a branch")
    assert (parting.a.to, parting.b.to) == ("Ship", "Refuse")


def test_the_reason_of_each_way_is_named(project: Project, client: Client) -> None:
    """Rules of each execution's own definition, all that lead there, a Catcher, or the end."""
    big, missing = {"Variable": "$.amount", "NumericGreaterThan": 9}, {"Variable": "$.x"}
    rules = [big | {"Next": "Ship"}, missing | {"IsPresent": True, "Next": "Ship"}]
    work = {"Type": "Parallel", "Branches": [fail_if_negative()], "ResultPath": None, "Next": "X"}
    catch = {"Catch": [{"ErrorEquals": ["Negative"], "Next": "Late"}]}
    states = {
        "Work": work | catch,
        "X": {"Type": "Choice", "Choices": rules, "Default": "Late"},
        **{name: {"Type": "Pass", "End": True} for name in ("Ship", "Late")},
    }
    machine = create(project, {"StartAt": "Work", "States": states})
    shipped = drain(start(machine, {"amount": 10}, name="shipped"))
    late = drain(start(machine, {"amount": 1}, name="late"))
    caught = drain(start(machine, {"amount": -1}, name="caught"))
    first = ask(client, shipped, late).context["divergence"]
    assert (first.at, first.summary) == ("X", "rule 1 or rule 2 against Default")
    assert ways(markup(ask(client, caught, late))) == [
        "A continued to Late by Catcher 1 Negative View step in A",
        "B continued to X View step in B",
    ]
    rules.insert(0, missing | {"IsPresent": True, "Next": "Late"})
    definition = json.dumps({"StartAt": "Work", "States": {**states, "Work": work}})
    machine = machines.update_machine(machine, definition=definition)
    again = drain(start(machine, {"amount": 10}, name="again"))
    second = ask(client, again, late).context["divergence"]
    assert second.summary == "rule 2 or rule 3 against Default", "as its own definition counts"
    failed = drain(start(machine, {"amount": -1}, name="failed"))
    assert ways(markup(ask(client, failed, late)))[0] == (
        "A ended there: failed with Negative View step in A"
    )


def fail_if_negative() -> dict[str, Any]:
    """Return a branch that fails for a negative amount."""
    rule = {"Variable": "$.amount", "NumericLessThan": 0, "Next": "Break"}
    states = {
        "Sign": {"Type": "Choice", "Choices": [rule], "Default": "Fine"},
        "Break": {"Type": "Fail", "Error": "Negative"},
        "Fine": {"Type": "Succeed"},
    }
    return {"StartAt": "Sign", "States": states}


def test_a_failure_is_compared_with_the_last_success(project: Project, client: Client) -> None:
    """The link on its page leads to the newest success of its machine; there may be none."""
    machine = create(project, ORDERS)
    failed = drain(start(machine, {"amount": 500}, name="failed"))
    link = f"/compare/?{urlencode({'a': failed.arn, 'b': 'last-success'})}"
    assert "last-success" not in text(client.get(page(failed))), "there is none yet"
    assert "has succeeded" in text(client.get(link), 422)
    assert 'value="last-success"' not in text(client.get("/compare/", {"a": failed.arn}))
    drain(start(machine, {"amount": 1}, name="older"))
    assert link in text(client.get(page(failed)))
    newest = drain(start(machine, {"amount": 1}, name="newest"))
    drain(start(create(project, PASS, "other"), name="foreign"))
    assert link in text(client.get(page(failed)))
    assert 'value="last-success"' not in text(client.get("/compare/")), "A is not known"
    of_one = text(client.get("/compare/", {"machine": machine.name}))
    assert 'value="last-success"' in of_one, "whichever of the list is chosen as A"
    offered = text(client.get("/compare/", {"a": failed.arn}))
    assert f'href="{page(newest)}"' in offered.split('value="last-success"')[1]
    answer: Any = client.get(link)
    assert answer.status_code == 302
    assert answer.url.endswith(urlencode({"a": failed.arn, "b": newest.arn}))
    assert "last-success" not in text(client.get(page(newest)))


@pytest.mark.postgres_too
def test_failures_are_offered_beside_their_last_success(
    project: Project, client: Client, django_assert_max_num_queries: Any
) -> None:
    """The newest of each machine that ever succeeded; not once something is chosen or filtered."""
    for name in ("first", "second", "third", "fourth"):
        machine = create(project, ORDERS, name)
        drain(start(machine, {"amount": 1}, name="good"))
        drain(start(machine, {"amount": 500}, name="older"))
        newest = drain(start(machine, {"amount": 500}, name="newest"))
    never = drain(start(create(project, ORDERS, "never"), {"amount": 500}, name="never"))
    client.get("/compare/")
    with django_assert_max_num_queries(12):
        answer: Any = client.get("/compare/")
    suggested = answer.context["suggested"]
    assert [each.state_machine.name for each in suggested] == ["fourth", "third", "second"]
    assert {each.name for each in suggested} == {"newest"}
    shown = text(answer)
    link = f"/compare/?{urlencode({'a': newest.arn, 'b': 'last-success'})}"
    assert f'href="{link}"' in shown
    assert f"a={never.arn}" not in shown
    assert client.get(link).status_code == 302
    for query in ({"a": newest.arn}, {"machine": "fourth"}, {"q": "new"}):
        assert "suggested-title" not in text(client.get("/compare/", query))


def test_a_success_in_another_region_is_no_last_success(project: Project, client: Client) -> None:
    """A state machine there may have the same name."""
    machine = create(project, ORDERS)
    drain(start(machine, {"amount": 500}))
    twin = machines.create_machine(
        project, "eu-west-1", name=machine.name, definition=json.dumps(PASS), role_arn=ROLE
    )
    drain(start(twin))
    shown = text(client.get("/compare/", {"machine": machine.name}))
    assert 'name="a"' in shown
    assert 'value="last-success"' not in shown


def test_two_marked_rows_are_compared(project: Project, client: Client) -> None:
    """The newer one is A; one or three rows are refused with words."""
    machine = create(project, PASS)
    rows = [drain(start(machine, name=name)) for name in ("one", "two", "three")]
    answer: Any = client.get(f"/compare/?x={rows[0].pk}&x={rows[1].pk}")
    assert answer.url.endswith(urlencode({"a": rows[1].arn, "b": rows[0].arn}))
    single = text(client.get(f"/compare/?x={rows[0].pk}"), 422)
    assert "Select two rows to compare. 1 is selected." in single
    three = "&".join(f"x={row.pk}" for row in rows)
    assert "3 are selected." in text(client.get(f"/compare/?{three}"), 422)
    assert "Select two rows" in text(client.get("/compare/"))


def test_nobody_compares_what_they_may_not_see(project: Project, client: Client) -> None:
    """An execution of another project does not exist here; the same one twice is refused."""
    from console.models import Project

    theirs = Project.objects.create(name="theirs", account_id="999999999999")
    foreign = drain(start(create(theirs, PASS, "secret")))
    own = drain(start(create(project, PASS), {"x": MARKUP}))
    assert "There is no execution with this ARN" in text(ask(client, own, foreign), 422)
    assert client.get(f"/compare/?x={own.pk}&x={foreign.pk}").status_code == 422
    assert "the same execution" in text(ask(client, own, own), 422)
    other = drain(start(create(project, PASS, "other"), {"x": 1}))
    assert MARKUP not in ask(client, own, other).content.decode()


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ('{"x": 1}', '{"x": 1.0}', []),
        ('{"x": 1}', '{"x": true}', [("x", "1", "true")]),
        ('{"x": [1, 2]}', '{"x": [1, 3, 4]}', [("x[1]", "2", "3"), ("x[2]", None, "4")]),
        ('{"a b": 1}', "{}", [('["a b"]', "1", None)]),
        ('{"x": null}', "{}", [("x", "null", None)]),
        ('"text"', '{"x": 1}', [("all of it", '"text"', '{"x": 1}')]),
        ("not json", "not jsom", [("all of it", '"not json"', '"not jsom"')]),
        (None, "1", [("all of it", None, "1")]),
        (None, None, []),
    ],
)
def test_payloads_are_compared_value_by_value(
    a: str | None, b: str | None, expected: list[tuple[str, str | None, str | None]]
) -> None:
    """Exactly what differs, with its path."""
    assert [
        (difference.path, difference.a, difference.b)
        for difference in diff_field("input", a, b).differences
    ] == expected


def test_a_stack_trace_is_one_folded_value() -> None:
    """Its telling line is seen; another trace differs once, not in each of its lines."""
    lines = [f'  File "module.py", line {number}, in call\n' for number in range(30)]
    python = "\n".join(["Traceback (most recent call last):", *lines, "KeyError: 'sku'"])
    [only] = diff_field("cause", python, None).differences
    assert only.long_b is None
    assert only.long_a is not None
    assert only.long_a.beginning == "KeyError: 'sku'"
    assert only.long_a.whole == python
    error = {"errorMessage": "no stock", "errorType": "OutOfStock", "stackTrace": lines}
    [only] = diff_field("cause", None, json.dumps(error)).differences
    assert only.long_b is not None
    assert only.long_b.beginning == "OutOfStock: no stock"
    assert only.long_b.whole == json.dumps(error, indent=2)
    [only] = diff_field(
        "cause", json.dumps(error), json.dumps({**error, "stackTrace": lines[:9]})
    ).differences
    assert only.path == "stackTrace"
    assert only.long_a is not None
    assert only.long_a.whole == "\n".join(lines)
    [only] = diff_field("input", '"a"', json.dumps("b" * 9_000)).differences
    assert only.long_a is None
    assert only.long_b is not None
    assert (len(only.long_b.beginning), len(only.long_b.whole)) == (111, 4_001)


def test_a_flood_of_differences_is_cut() -> None:
    """The page stays readable, and says that there are more."""
    diff = diff_field("input", str(list(range(1000))), str(list(range(1, 1001))))
    assert (len(diff.differences), diff.more) == (200, True)


def test_each_status_leads_to_its_step(project: Project, client: Client) -> None:
    """In either execution; a state that was not entered leads nowhere."""
    machine = create(project, ORDERS)
    a = drain(start(machine, {"amount": 500}, name="a"))
    b = drain(start(machine, {"amount": 5}, name="b"))
    shown = text(ask(client, a, b))
    assert f'href="{page(a, "?step=Refuse")}"' in shown
    assert f'href="{page(b, "?step=Refuse")}"' not in shown
    assert f'href="{page(b, "?step=Ship")}"' in shown
    assert f'href="{page(a, "input.json")}"' in shown
    assert f'href="{page(b, "output.json")}"' in shown
    assert f'href="{page(a, "output.json")}"' not in shown


def test_only_what_differs_is_shown_if_asked(project: Project, client: Client) -> None:
    """The heading counts what differs, the address keeps the choice."""
    machine = create(project, ORDERS)
    a = drain(start(machine, {"amount": 500}, name="a"))
    b = drain(start(machine, {"amount": 5}, name="b"))
    query = {"a": a.arn, "b": b.arn}
    every = client.get("/compare/", query)
    assert "2 of 4 differ" in text(every)
    some = client.get("/compare/", {**query, "only": "differing"})
    assert [row.name for row in some.context["rows"]] == ["Refuse", "Ship"]
    same = drain(start(machine, {"amount": 6}, name="c"))
    shown = text(client.get("/compare/", {"a": b.arn, "b": same.arn, "only": "differing"}))
    assert "No state differs" in shown


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (1000, 3200, "+2.2 s"),
        (3200, 1000, "\u22122.2 s"),
        (10, 60, ""),
        (10_000, 10_500, ""),
        (1, None, ""),
    ],
)
def test_a_longer_duration_is_told(a: int, b: int | None, words: str) -> None:
    """What no reader would notice is left out."""
    row = ComparedRow("S", ComparedState(spent=a), ComparedState(spent=b))
    assert row.lag_text == words


def test_a_changed_definition_is_a_press_away(project: Project, client: Client) -> None:
    """From the note to the difference of the two texts."""
    machine = create(project, ORDERS)
    a = drain(start(machine, {"amount": 5}, name="a"))
    machines.update_machine(machine, definition=json.dumps({**ORDERS, "Comment": "new"}))
    machine.refresh_from_db()
    b = drain(start(machine, {"amount": 5}, name="b"))
    shown = text(ask(client, a, b))
    address = shown.split("The definition was changed")[1].split('href="')[1].split('"')[0]
    assert "new" in text(client.get(address))


def test_two_are_chosen_from_a_list(project: Project, client: Client) -> None:
    """The newest executions, of the same machine once A is known; what was typed comes first."""
    machine = create(project, ORDERS)
    a, b = (drain(start(machine, {"amount": 1}, name=name)) for name in "ab")
    other = drain(start(create(project, PASS, "other"), name="c"))
    shown = text(client.get("/compare/"))
    for execution in (a, b, other):
        assert f'name="a" value="{execution.arn}"' in shown
    assert f'value="{other.arn}"' not in text(client.get("/compare/", {"machine": "machine"}))
    shown = text(client.get("/compare/", {"a": a.arn}))
    assert f'name="b" value="{b.arn}"' in shown
    assert f'name="b" value="{a.arn}"' not in shown
    assert f'value="{other.arn}"' not in shown
    sent: dict[str, Any] = {"a": [a.arn, ""], "b": [other.arn, b.arn]}
    assert client.get("/compare/", sent).context["b"] == other


def test_the_form_says_what_is_missing(project: Project, client: Client) -> None:
    """Nothing is said of B where A cannot be found; and a press without a choice is answered."""
    machine = create(project, ORDERS)
    execution = drain(start(machine, {"amount": 1}, name="one"))
    shown = text(client.get("/compare/", {"a": "x", "b": "last-success"}), 422)
    assert shown.count("There is no execution with this ARN") == 1
    sent = text(client.get("/compare/", {"a": execution.arn, "b": ""}), 422)
    assert "B: Choose the other execution." in sent
    assert "A: Choose an execution." in text(
        client.get("/compare/", {"a": "", "b": execution.arn}), 422
    )


def test_the_list_takes_as_many_queries_for_many(project: Project, client: Client) -> None:
    """One for its rows, of many machines, too."""
    counts = []
    for number in range(0, 12, 6):
        for place in range(number, number + 6):
            drain(start(create(project, PASS, f"m{place}"), name="run"))
        with CaptureQueriesContext(connection) as taken:
            text(client.get("/compare/"))
        counts.append(len(taken))
    assert counts[0] == counts[1] <= 9  # one of them for the summaries
