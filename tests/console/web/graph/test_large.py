"""What a definition of ten thousand states costs a page, and who may ask for it."""

from __future__ import annotations

import functools
import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from console.web.graph import svg
from tests.console.store.helpers import create, start
from tests.console.web.graph.workflows import chain, choices
from tests.console.web.helpers import page, text
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

STATES = 10_000
MEGABYTE = 1_000_000
CHECK = "/machines/new/_check"


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_the_check_is_for_editors(signed_in: Callable[[str], Client], role: str) -> None:
    """Nobody else writes definitions, and nothing of theirs is laid out."""
    client = signed_in(role)
    assert client.post(CHECK, {"text": chain(2)}).status_code == 403
    assert client.post(CHECK, {"text": "{"}).status_code == 403


@pytest.mark.slow
def test_the_check_of_ten_thousand_states_is_small_and_quick(
    project: Project, client: Client
) -> None:
    """It draws the part next to the start; it took 23 s and seven megabytes."""
    del project
    svg.PICTURES.clear()
    begun = time.process_time()
    answer = client.post(CHECK, {"text": chain(STATES, "first")})
    spent = time.process_time() - begun
    shown = text(answer)
    assert "500 of 10,000 states are drawn" in shown
    assert len(answer.content) < MEGABYTE / 2
    assert spent < 5  # a second, on a processor that has nothing else to do


@pytest.mark.slow
def test_the_check_of_ten_thousand_problems_is_small(project: Project, client: Client) -> None:
    """The first hundred are listed; errors come first."""
    del project
    states = {f"s{number}": {"Type": "Pass", "Next": f"none{number}"} for number in range(STATES)}
    answer = client.post(CHECK, {"text": json.dumps({"StartAt": "s0", "States": states})})
    shown = text(answer)
    match = re.search(r"([\d,]+) problems", shown)
    assert match is not None
    assert int(match[1].replace(",", "")) >= STATES
    assert shown.count('class="problem failed"') == 100
    assert "First 100 problems" in shown
    assert len(answer.content) < MEGABYTE / 2


@pytest.mark.slow
def test_a_workflow_over_the_limit_has_a_notice_wherever_it_is_drawn(
    project: Project, client: Client
) -> None:
    """On the machine's page, the execution's, in the time machine and in files."""
    wait = json.loads(choices(40, 40, "over the limit"))
    wait["States"]["pause"] = {"Type": "Wait", "Seconds": 3600, "Next": "choice0"}
    wait["StartAt"] = "pause"
    execution = start(create(project, wait, "large"), name="x")
    notice = "too large for Graphviz within 2 seconds"

    def shown(address: str) -> str:
        """Return a page, "" while the pool replaces its killed children on a loaded machine."""
        posted = {"text": json.dumps(wait)}
        markup = text(client.post(CHECK, posted) if address == CHECK else client.get(address))
        return "" if "Graphviz is busy" in markup else markup

    for address in (
        CHECK,
        "/machines/large/definition/",
        "/machines/large/edit/",
        "/machines/large/definition.svg",
        page(execution),
        page(execution, "?at=1"),
        page(execution, "graph.svg"),
    ):
        assert notice in wait_until(functools.partial(shown, address)), address


@pytest.mark.slow
def test_pages_of_ten_thousand_states_are_bounded(project: Project, client: Client) -> None:
    """Text, steps, grid and insights come in parts that say of how many."""
    definition = json.loads(chain(STATES))
    definition["States"]["state0"] = {"Type": "Wait", "Seconds": 3600, "Next": "state1"}
    execution = start(create(project, definition, "large"), name="x")
    machine = execution.state_machine
    assert machine is not None
    other = start(machine, name="y")
    pages = {
        f"/compare/?a={execution.arn}&b={other.arn}": "1,000 of 10,000 states",
        "/machines/large/definition/": "Page 1 of ",
        "/machines/large/grid/": "1,000 of 10,000 states are shown",
        "/machines/large/insights/": '<span class="note">1,000 of 10,000</span>',
        page(execution): "1,000 of 10,000 steps shown",
        page(execution, "?find=state9999&view=steps"): "state9999",
    }
    for address, words in pages.items():
        answer = client.get(address)
        assert words in text(answer), address
        assert len(answer.content) < 2.5 * MEGABYTE, address
    moment = client.get(page(execution, "_at?at=1"))
    assert len(moment.content) < 2.5 * MEGABYTE


def test_a_press_on_a_state_leads_to_its_page_of_the_text(project: Project, client: Client) -> None:
    """The text has pages; the state has the focus."""
    states = {
        f"s{number}": {
            "Type": "Pass",
            "Comment": "c",
            "Result": list(range(20)),
            "Next": f"s{number + 1}",
        }
        for number in range(400)
    }
    states["s400"] = {"Type": "Succeed"}
    create(project, {"StartAt": "s0", "States": states}, "long")
    first = text(client.get("/machines/long/definition/"))
    (link,) = re.findall(r'href="(\?[^"]*state=n400)"', first)
    assert "Page 1 of 3" in first
    assert 'id="src-n400"' not in first
    there = text(client.get(f"/machines/long/definition/{link}"))
    assert "Page 3 of 3" in there
    assert '<span class="src" id="src-n400" tabindex="-1" autofocus>' in there
    assert "Page 3 of 3" in text(client.get("/machines/long/definition/?page=999999"))
    assert "Page 1 of 3" in text(client.get("/machines/long/definition/?page=x&state=x"))
