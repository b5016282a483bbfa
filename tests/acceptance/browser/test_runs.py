"""What becomes of an execution afterwards: as a test, over days, as a picture, again."""

# ruff: noqa: N802 - each test is named after the row it proves

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import ROLE, create, ended, start, type_definition, unique

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
ROOT = Path(__file__).parents[3]


def replay(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py replay``."""
    command = [sys.executable, "manage.py", "replay", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def asked(server: Server) -> tuple[dict[str, Any], str]:
    """Return a definition with an activity, and the path of an execution in which it was done."""
    client = server.client()
    worker = client.create_activity(name=unique("a"))["activityArn"]
    big = {"Variable": "$.sum", "NumericGreaterThan": 100, "Next": "Ask"}
    definition = {
        "StartAt": "Count",
        "States": {
            "Count": {"Type": "Task", "Resource": worker, "Next": "Big?"},
            "Big?": {"Type": "Choice", "Choices": [big], "Default": "Done"},
            "Ask": {"Type": "Wait", "Seconds": 1, "Next": "Done"},
            "Done": {"Type": "Pass", "End": True},
        },
    }
    path = start(server, create(server, definition), {"n": 1})
    task = client.get_activity_task(activityArn=worker)
    client.send_task_success(taskToken=task["taskToken"], output='{"sum": 120}')
    return definition, ended(server, path)


def test_X11_an_execution_is_downloaded_as_a_test(
    page: Page, server: Server, tmp_path: Path
) -> None:
    """It runs again to the same end; with a changed definition it fails and says where."""
    definition, path = asked(server)
    page.goto(path)
    page.locator("details.cli > summary").click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download as a test").click()
    file, changed = tmp_path / waiting.value.suggested_filename, tmp_path / "changed.json"
    assert file.name == "run.scenario.json"
    waiting.value.save_as(file)
    done = replay(str(file))
    assert (done.returncode, done.stdout) == (0, f"{file}: same path, same output\n"), done.stderr
    definition["States"]["Big?"]["Choices"][0]["NumericGreaterThan"] = 1000
    changed.write_text(json.dumps(definition), encoding="utf-8")
    failed = replay(str(file), "--definition", str(changed))
    assert failed.returncode == 1
    assert failed.stdout == f"{file}: path, state 3 (after Big?): got Done, wanted Ask\n"
    scenario = json.loads(file.read_text(encoding="utf-8"))
    for parameters in scenario["TestState"]:
        whole = json.dumps(scenario["Scenario"]["Definition"])
        tried = server.client().test_state(definition=whole, roleArn=ROLE, **parameters)
        assert (tried["status"], tried["nextState"]) == ("SUCCEEDED", "Big?")
    expect(page.locator("h1")).to_contain_text("run")


def later(server: Server, machine: str, milliseconds: int) -> None:
    """Let so much time go by: everything so far happened that much earlier."""
    which = "(SELECT id FROM console_execution WHERE state_machine_arn LIKE '%:' || :machine)"
    parameters = {"by": milliseconds, "machine": machine}
    with closing(sqlite3.connect(server.data / "stateyard.sqlite3", timeout=10)) as database:
        database.execute(
            f"UPDATE console_historyevent SET at_ms = at_ms - :by WHERE execution_id IN {which}",
            parameters,
        )
        database.execute(
            "UPDATE console_execution SET start_ms = start_ms - :by, stop_ms = stop_ms - :by"
            f" WHERE id IN {which}",
            parameters,
        )
        database.commit()


@pytest.fixture
def redriven(page: Page, server: Server) -> str:
    """Return the page of an execution that failed, and three days later was redriven."""
    client = server.client()
    worker = client.create_activity(name=unique("a"))["activityArn"]
    states = {
        "First": {"Type": "Pass", "Next": "Pay"},
        "Pay": {"Type": "Task", "Resource": worker, "Next": "Last"},
        "Last": {"Type": "Pass", "End": True},
    }
    machine = create(server, {"StartAt": "First", "States": states})
    path = start(server, machine)
    task = client.get_activity_task(activityArn=worker)
    client.send_task_failure(taskToken=task["taskToken"], error="Bad", cause="it broke")
    ended(server, path)
    later(server, machine, 3 * 24 * 3600 * 1000)
    page.goto(f"{path}redrive/")
    page.get_by_role("button", name="Redrive").click()
    task = client.get_activity_task(activityArn=worker)
    client.send_task_success(taskToken=task["taskToken"], output="1")
    return ended(server, path)


@pytest.mark.parametrize("width", [1440, 390])
def test_X10_three_idle_days_are_folded(page: Page, redriven: str, width: int) -> None:
    """Each bar is 4 px wide at least, the fold says "3 d", and an attempt can be had alone."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{redriven}?view=timeline")
    bars = page.locator(".bar rect[role=img]")
    widths = bars.evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    assert len(widths) == 4
    assert min(widths) >= 4
    expect(page.locator("#axis text.fold")).to_contain_text("3 d")
    tops = bars.evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    assert tops[2] - tops[1] > 10  # Pay, failed and then redriven: two lanes
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="Redrive 1").click()
    expect(page.locator("#axis text.fold")).to_have_count(0)
    expect(bars).to_have_count(2)
    assert "attempt=2" in page.url
    page.reload()
    expect(bars).to_have_count(2)
    page.get_by_role("link", name="First run").click()
    expect(page.get_by_role("img", name="First run: attempt 1 failed")).to_be_visible()


COLOURS = """async ([data, wanted]) => {
  const image = new Image();
  image.src = data;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const all = context.getImageData(0, 0, image.width, image.height).data;
  const found = {};
  for (let at = 0; at < all.length; at += 4) {
    const hex = "#" + [0, 1, 2].map((n) => all[at + n].toString(16).padStart(2, "0")).join("");
    if (wanted.includes(hex)) found[hex] = (found[hex] ?? 0) + 1;
  }
  return { width: image.width, height: image.height, found };
}"""
WHITE, GREEN, RED, INK = "#ffffff", "#187a34", "#c62f1c", "#17202b"


def png(page: Page, file: Path) -> dict[str, Any]:
    """Press the button; return the size of the picture and how often it has which colour."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name="PNG").click()
    waiting.value.save_as(file)
    data = file.read_bytes()
    assert data.startswith(b"\x89PNG\r\n")
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    result: dict[str, Any] = page.evaluate(COLOURS, [url, [WHITE, GREEN, RED, INK]])
    return result | {"name": waiting.value.suggested_filename}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_graph_is_saved_as_a_png(
    page: Page, server: Server, tmp_path: Path, scheme: Any
) -> None:
    """Twice the size of the graph, in the colours of its statuses, on white in either style."""
    page.emulate_media(color_scheme=scheme)
    states = {
        "Good": {"Type": "Pass", "Next": "Bad"},
        "Bad": {"Type": "Fail", "Error": "Oops"},
    }
    machine = create(server, {"StartAt": "Good", "States": states})
    page.goto(ended(server, start(server, machine)))
    drawn = png(page, tmp_path / "run.png")
    box = page.locator("svg.flow").evaluate(
        "one => [one.viewBox.baseVal.width, one.viewBox.baseVal.height]"
    )
    assert drawn["name"] == "run.png"
    assert drawn["width"] >= 2 * box[0]
    assert drawn["height"] == pytest.approx(2 * (box[1] + 40), abs=2)
    assert min(drawn["found"].get(colour, 0) for colour in (GREEN, RED, INK)) > 100
    assert drawn["found"][WHITE] > drawn["width"] * drawn["height"] / 3
    page.goto(f"/machines/{machine}/definition/")
    box = page.locator("svg.flow").evaluate(
        "one => [one.viewBox.baseVal.width, one.viewBox.baseVal.height]"
    )
    plain = png(page, tmp_path / "machine.png")
    assert plain["name"] == f"{machine}.png"
    assert (plain["width"], plain["height"]) == (
        pytest.approx(2 * box[0], abs=2),
        pytest.approx(2 * box[1], abs=2),
    )
    assert GREEN not in plain["found"]


def test_X20_a_new_execution_begins_in_a_state_with_edited_input(
    page: Page, server: Server
) -> None:
    """From the panel of the failed step; the new one says it is no AWS operation and whence."""
    good = {"Variable": "$.sum", "NumericGreaterThan": 0, "Next": "Good"}
    states = {
        "First": {"Type": "Pass", "Result": {"sum": -1}, "Next": "Check"},
        "Check": {"Type": "Choice", "Choices": [good], "Default": "Bad"},
        "Good": {"Type": "Pass", "End": True},
        "Bad": {"Type": "Fail", "Error": "Negative"},
    }
    machine = create(server, {"StartAt": "First", "States": states})
    path = ended(server, start(server, machine))
    page.goto(path)
    page.locator("[data-node]").filter(has_text="Check").click()
    expect(page.locator("#panel-title")).to_contain_text("Check")  # it showed the failed state
    page.get_by_role("link", name="Replay from here").click()
    expect(page.locator("main")).to_contain_text("Stateyard only, not an AWS operation.")
    assert page.input_value("#input") == '{"sum":-1}'
    assert axe_faults(page) == []
    type_definition(page, '{"sum": 5}')
    page.fill("#name", "mended")
    page.get_by_role("button", name="Start replay").click()
    expect(page.locator("h1")).to_contain_text("mended")
    expect(page.locator("#status")).to_contain_text("Succeeded")
    expect(page.locator("main")).to_contain_text("Replay (Stateyard only)")
    tones = page.locator("[data-node]").evaluate_all("all => all.map(one => one.classList[1])")
    assert tones == ["idle", "succeeded", "succeeded", "idle"]
    assert axe_faults(page) == []
    page.locator("main").get_by_role("link", name="run", exact=True).click()
    expect(page.locator("h1")).to_contain_text("run")
    expect(page.locator("#status")).to_contain_text("Failed")
    assert page.url.split("?")[0].endswith(path)


def expired(server: Server) -> str:
    """Return a token of this server for its first execution whose time is over."""
    code = "from django.core import signing; print(signing.dumps([1, 0, 'owner'], salt={!r}))"
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code.format("stepyard.shares")],
        cwd=ROOT,
        env={**os.environ, "STATEYARD_DATA": str(server.data)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def fetched(url: str) -> tuple[int, str]:
    """Fetch an address as curl would: without cookies."""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_X17_a_link_gives_the_graph_as_a_picture_and_as_words(page: Page, server: Server) -> None:
    """Who has it sees the statuses of the page without signing in; an expired one gives 403."""
    states = {
        "Good": {"Type": "Pass", "Next": "Bad"},
        "Bad": {"Type": "Fail", "Error": "Oops", "Cause": "canary"},
    }
    path = ended(server, start(server, create(server, {"StartAt": "Good", "States": states})))
    page.goto(path)
    page.locator("details.cli > summary").click()
    page.get_by_role("link", name="Share the graph").click()
    page.select_option("#hours", "1")
    page.get_by_role("button", name="Create link").click()
    assert axe_faults(page) == []
    picture, words = (text.strip() for text in page.locator("pre.code").all_inner_texts()[:2])
    status, drawn = fetched(picture)
    assert (status, drawn.lstrip()[:4]) == (200, "<svg")
    assert "Failed · 0 ms" in drawn
    assert "Failed at Bad" in drawn
    status, outline = fetched(words)
    assert (status, "Good  Succeeded  Pass" in outline) == (200, True)
    assert "canary" not in drawn + outline
    token = picture.rpartition("/shared/")[2].partition("/")[0]
    assert fetched(picture.replace(token, expired(server)))[0] == 403
    assert "This link has expired." in fetched(picture.replace(token, expired(server)))[1]
