"""Pages keep what the reader did, read without a script, show names as typed, fit a phone.

(Above 300 lines: what holds for every page, over one list of pages.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.acceptance.browser.yard import (
    create,
    login_of,
    map_run,
    over,
    start,
    unique,
    waits,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title>]]>&#x3c;b&#x3e;",
    "javascript:alert(1)",
    "\u202egnp.exe \\N\\G\\E",
    "bell\u0007 emoji 🎉 日本語",
]


@pytest.fixture(scope="module")
def paths(server: Server) -> dict[str, str]:
    """Return the addresses of every page, with something to see on each."""
    machine = create(server, waits(600))
    running = start(server, machine)
    start(server, machine, name="other")
    spread = create(server, over(waits(600)))
    running_map = start(server, spread, list(range(70)))
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}"
    activity = server.client().create_activity(name=unique("ask"))["activityArn"]
    approve = {"Type": "Task", "Resource": activity, "End": True}
    asking = create(server, {"StartAt": "Approve refund", "States": {"Approve refund": approve}})
    asked = start(server, asking, {"order": 4711})
    start(server, asking, {"order": 4712}, name="alike")  # so that both can be answered together
    server.client("cloudwatch").put_metric_alarm(
        AlarmName=f"{machine} fails",
        Namespace="AWS/States",
        MetricName="ExecutionsFailed",
        Dimensions=[{"Name": "StateMachineArn", "Value": arn.replace("execution", "stateMachine")}],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
    )
    return {
        "overview": "/",
        "connect": "/connect/",
        "project settings": "/settings/",
        "machines": "/machines/",
        "machine": f"/machines/{machine}/",
        "no executions": "/machines/Wait/",
        "definition": "/machines/OrderProcessing/definition/",
        "versions": "/machines/OrderProcessing/versions/",
        "changes": "/machines/OrderProcessing/diff/",
        "settings": "/machines/OrderProcessing/settings/",
        "logs": "/machines/OrderProcessing/logs/",
        "grid": f"/machines/{machine}/grid/",
        "insights": f"/machines/{machine}/insights/",
        "hot states": f"/machines/{machine}/hot-states/?by=p95",
        "executions of a state": f"/machines/{machine}/hot-states/executions/?state=Nap&figure=p95",
        "resilience": "/machines/OrderProcessing/resilience/",
        "named inputs": f"/machines/{machine}/inputs/",
        "new": "/machines/new/",
        "edit": "/machines/OrderProcessing/edit/",
        "start": f"/machines/{machine}/start/",
        "test": "/machines/OrderProcessing/test/",
        "test with recorded input": f"/machines/{machine}/test/?state=Nap&origin=run",
        "delete": f"/machines/{machine}/delete/",
        "calls": f"/machines/{asking}/calls/",
        "start with recent inputs": f"/machines/{asking}/start/",
        "open task": f"{asked}tasks/3/",
        "dry run of a stop": f"/executions/bulk/?action=stop&all=1&machine={asking}",
        "keys": "/keys/",
        "executions": "/executions/",
        "filtered": "/executions/?status=RUNNING&from=2026-01-01&q=run&find=input.x+%3D+1",
        "bad filter": "/executions/?min=x&find=x+%3D",
        "dry run": "/executions/bulk/?action=redrive&all=1",
        "dry run of replays": "/executions/bulk/?action=replay&all=1",
        "bulk jobs": "/executions/bulk/",
        "compare": f"/compare/?a={arn}:run&b={arn}:other",
        "compare form": "/compare/",
        "failures": "/failures/",
        "dry run of a pause": f"/executions/bulk/?action=pause&all=1&machine={asking}",
        "pause of all schedules": "/schedules/pause/",
        "notifications": "/notifications/",
        "audit": "/audit/?act=-StartExecution",
        "server audit": "/server-audit/",
        "activities": "/activities/",
        "activity": "/activities/Add/",
        "targets": "/targets/",
        "search that finds nothing": "/executions/?find=caught+%3D+Nobody+duration+%3E+9d",
        "execution tree": f"{running_map}tree/",
        "alarms": "/alarms/",
        "tasks": "/tasks/?columns=order.id",
        "tasks with a bad column": "/tasks/?columns=a+b",
        "approval that is closed": "/approval/none/",
        "machine's alarms": f"/machines/{machine}/alarms/",
        "execution": running,
        "step": f"{running}?step=Nap",
        "event": f"{running}events/1/",
        "events": f"{running}events/?open=1.2",
        "definition it ran with": f"{running}definition/",
        "comparison with what differs": f"/compare/?a={arn}:run&b={arn}:other&only=differing",
        "compare with another": f"/compare/?a={arn}:run",
        "steps": f"{running}?view=steps&sort=-name",
        "timeline": f"{running}?view=timeline&step=Nap&tab=attempts",
        "map run": map_run(server, running_map),
        "map run's failed children": f"{map_run(server, running_map)}?status=FAILED",
        "past": f"{running}?at=3&step=Before&tab=flow",
        "import": "/import/",
        "stop": f"{running}stop/",
        "breakpoints": f"{running}breakpoints/",
        "halted-lines": "/breakpoints/",
        "faults": f"{running}faults/",
        "replay": f"{running}replay/?step=Before",
        "share": f"{running}share/",
        "operations": "/operations/",
        "members": "/members/",
        "password": "/password/",
        "limits of a key": f"/keys/{server.keys()[0]}/limits/",
        "service accounts": "/service-accounts/",
        "sign-in": "/sign-in/",
        "account": "/account/",
        "second factor": "/account/second-factor/",
        "projects": "/projects/",
        "quotas": "/settings/quotas/",
        "denied actions": "/settings/denied-actions/",
        "retention": "/settings/retention/",
        "mocks": "/settings/mocks/",
        "settings file": "/settings/file/",
        "own targets": "/settings/targets/",
        "own service": "/settings/targets/edit/service/",
        "own address": "/settings/targets/edit/address/",
        "own connection": "/settings/targets/edit/connection/?type=OAUTH_CLIENT_CREDENTIALS",
        "own function": "/settings/targets/edit/function/",
        "confirmation of an address": "/account/mail/none/",
        "new password by mail": "/password-reset/",
        "link for a new password that is closed": "/password-reset/MQ/none/",
        "missing": "/machines/nowhere/",
    }


@pytest.mark.row("X5")
def test_a_tick_loses_nothing(page: Page, server: Server) -> None:
    """Open rows, scroll, zoom, selection, focus and typed text survive many ticks."""
    path = start(server, create(server, waits(1, rounds=30)))
    page.goto(f"{path}?step=Nap")
    page.click("[data-open='2']")
    expect(page.locator("tr.detail .json").first).to_be_visible()
    page.click("[data-zoom-by='1']")
    page.click("[data-dialog=stop-dialog]")
    page.fill("#stop-dialog #cause", "half a sent")
    page.evaluate(
        """() => {
            // the panel's texts follow the visit that runs: each has an output only at its end
            const kept = "[data-node], #events > tr, #panel, #panel-title";
            window.nodes = [...document.querySelectorAll(kept)];
            window.before = document.querySelector("svg.flow").getAttribute("width");
            window.scrollTo(0, 200);
        }"""
    )
    rows = page.locator("#events > tr:not(.detail)").count()
    expect(page.locator("#events > tr:not(.detail)").nth(rows + 8)).to_be_attached()
    state = page.evaluate(
        """() => ({
            same: window.nodes.every((node) => node.isConnected),
            zoom: window.before === document.querySelector("svg.flow").getAttribute("width"),
            top: window.scrollY,
            open: document.querySelectorAll("tr.detail .json").length > 0,
            panel: document.querySelectorAll("#panel .json").length > 0,
            typed: document.querySelector("#stop-dialog #cause").value,
            focus: document.activeElement.id,
        })"""
    )
    assert state == {
        "same": True,
        "zoom": True,
        "top": 200,
        "open": True,
        "panel": True,
        "typed": "half a sent",
        "focus": "cause",
    }


@pytest.mark.row("X5")
def test_pause_stops_the_ticks(page: Page, server: Server) -> None:
    """Nothing moves while paused; resuming catches up without a gap."""
    page.goto(start(server, create(server, waits(1, rounds=30))))
    page.click("[data-pause]")
    expect(page.locator("[data-live-text]")).to_have_text("Paused")
    rows = page.locator("#events > tr").count()
    page.wait_for_timeout(2500)
    assert page.locator("#events > tr").count() == rows
    page.click("[data-pause]")
    expect(page.locator("#events > tr").nth(rows + 3)).to_be_attached()
    ids = page.locator("#events > tr").evaluate_all("rows => rows.map(row => row.id)")
    assert ids == [f"e{number}" for number in range(1, len(ids) + 1)]


def test_pause_drops_the_answer_under_way(page: Page, server: Server) -> None:
    """A poll that has been sent brings no rows to a page that is paused."""
    under_way: list[Route] = []

    def hold(route: Route) -> None:
        under_way.append(route)

    page.goto(start(server, create(server, waits(1, rounds=30))))
    page.route("**/_delta*", hold)
    with page.expect_request("**/_delta*"):
        pass
    with page.expect_event("requestfailed"):
        page.click("[data-pause]")
    page.unroute("**/_delta*")
    expect(page.locator("[data-live-text]")).to_have_text("Paused")


def test_the_history_filters_without_losing_the_rest(page: Page, server: Server) -> None:
    """A filter has an address, Back takes it away, the panel stays."""
    path = start(server, create(server, waits(0)))
    page.goto(f"{path}?step=Nap")
    page.select_option("#type", "PassStateEntered")
    expect(page.locator("#events > tr")).to_have_count(2)
    assert "type=PassStateEntered" in page.url
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    page.go_back()
    expect(page.locator("#events > tr").first).to_contain_text("ExecutionStarted")
    page.goto(f"{path}?at=4")
    expect(page.locator("#e4")).to_be_focused()


def test_the_type_filter_learns_types_that_come_later(page: Page, server: Server) -> None:
    """What has just happened for the first time can be filtered by, without a reload."""
    page.goto(start(server, create(server, waits(2))))
    expect(page.locator("#type option", has_text="WaitStateEntered")).to_be_attached()
    expect(page.locator("#type option", has_text="ExecutionSucceeded")).to_be_attached()
    texts = page.locator("#type option").evaluate_all("all => all.slice(1).map(one => one.text)")
    assert texts == sorted(set(texts))


def test_lists_announce_new_executions(page: Page, server: Server) -> None:
    """A list does not jump: it says how many are new, and marks those that ended."""
    machine = create(server, waits(2))
    start(server, machine, name="one")
    page.goto(f"/machines/{machine}/")
    start(server, machine, name="two")
    expect(page.locator("#new-executions")).to_contain_text("1 new execution")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    expect(page.locator("#executions tbody")).to_contain_text("Succeeded")
    page.click("#new-executions a")
    expect(page.locator("#executions tbody tr")).to_have_count(2)


@pytest.mark.row("X18")
def test_everything_reads_without_a_script(
    browser: Browser, server: Server, signed_in: Path
) -> None:
    """Create, start, look into a step, open an event and stop, all by plain forms and links."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    name = unique("plain")
    page.goto("/machines/new/")
    page.fill("#name", name)
    page.fill("#text", '{"StartAt": "X"}')
    page.click("button[name=check]")
    expect(page.locator(".problem").first).to_be_visible()
    page.fill(
        "#text",
        page.locator("#text")
        .input_value()
        .replace(
            '"X"}', '"Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 300, "End": true}}}'
        ),
    )
    page.click("[data-save]")
    page.click("form[data-json-form] button.main")
    expect(page.locator("#status")).to_contain_text("Running")
    page.click("a[data-step=Nap]")
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    page.click("#e2 a")
    expect(page.locator("h1")).to_contain_text("WaitStateEntered")
    page.go_back()
    page.click("a.danger")
    page.fill("#cause", "no script")
    page.click("button.danger")
    expect(page.locator("#status")).to_contain_text("Aborted")
    context.close()


def test_hostile_names_are_shown_as_typed(page: Page, server: Server) -> None:
    """Markup, quotes, control characters and direction marks in names do nothing anywhere."""
    states = {
        name: {"Type": "Pass", "Comment": name, "Result": {name: name}, "Next": after}
        for name, after in zip(HOSTILE, [*HOSTILE[1:], "End of it"], strict=True)
    }
    states["End of it"] = {"Type": "Fail", "Error": HOSTILE[0], "Cause": HOSTILE[1]}
    machine = create(
        server,
        {"Comment": HOSTILE[0], "StartAt": HOSTILE[0], "States": states},
        "Ünï-🎉-\u202eevil",
    )
    path = start(server, machine, {HOSTILE[0]: HOSTILE[1]}, name="run-🎉-\u202eevil")
    own = f"/machines/{machine}/"
    for address in (own, f"{own}definition/", f"/failures/?machine={machine}", path):
        page.goto(address)
        expect(page.locator("main")).to_contain_text("🎉")
    expect(page.locator("#status")).to_have_text("Failed")
    for name in HOSTILE[:4]:
        node = page.locator("[data-node]").filter(has_text=name[:12]).first
        node.click()
        expect(page.locator("#panel-title")).to_contain_text(name)
        page.click("#panel [data-tab=definition]")
        expect(page.locator("#panel .code")).to_contain_text(name.replace('"', '\\"'))
        page.click("#panel [data-tab=io]")
    expect(page.locator("#outcome")).to_contain_text(HOSTILE[1])
    assert page.locator("main script, main img").count() == 0


TARGET_SIZE = "target-size"
"""Rule of WCAG 2.5.8 that axe runs on request only: 24 by 24 pixels, or that much room around."""


def axe_faults(page: Page, **options: Any) -> list[str]:
    """Return what axe reports about an open page that has axe's script."""
    result = page.evaluate("options => axe.run(options)", options)
    rules = result["violations"]
    rules += [rule for rule in result["incomplete"] if rule["id"] == TARGET_SIZE]
    return [f"  {rule['id']}: {node['html'][:120]}" for rule in rules for node in rule["nodes"][:5]]


def only(rule: str) -> dict[str, Any]:
    """Return axe's option to run one rule."""
    return {"type": "rule", "values": [rule]}


@pytest.mark.row("X18", "E16")
def test_no_page_breaks_an_accessibility_rule(page: Page, paths: dict[str, str]) -> None:
    """Axe finds nothing on any page, and no contrast that is too low in the dark theme.

    The themes differ by colours alone, and an open page follows the system from one to the other.
    """
    faults = []
    for name, path in paths.items():
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.goto(path)
        page.evaluate(Axe().axe_script)
        page.wait_for_timeout(150)
        lines = axe_faults(page, rules={TARGET_SIZE: {"enabled": True}})
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        page.wait_for_timeout(150)
        lines += axe_faults(page, runOnly=only("color-contrast"))
        if page.evaluate("document.documentElement.scrollWidth") > 1440:
            lines.append("  it scrolls sideways")
        faults += [f"{name}:", *lines] if lines else []
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("width", [390, 320])
def test_no_page_scrolls_sideways(page: Page, paths: dict[str, str], width: int) -> None:
    """Only tables and graphs scroll, inside their own regions; targets stay large enough."""
    page.set_viewport_size({"width": width, "height": 800})
    faults = []
    for name, path in paths.items():
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        if width == 390:
            page.evaluate(Axe().axe_script)
            lines = axe_faults(page, runOnly=only(TARGET_SIZE))
            faults += [f"{name}:", *lines] if lines else []
    assert not faults, "\n".join(faults)


def test_theme_and_clock_are_kept(page: Page) -> None:
    """A choice holds on the next page; switching the clock changes every time and no datetime."""
    page.goto("/machines/")
    first = page.locator("time").first
    before = first.get_attribute("datetime")
    page.click("[aria-label='Display and account']")
    with page.expect_response("**/preferences/"):
        page.click("button[name=theme][value=dark]")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Escape")
    with page.expect_response("**/preferences/"):
        page.click("button[name=clock][value=local]")
    expect(page.locator("html")).to_have_attribute("data-clock", "local")
    assert first.get_attribute("datetime") == before
    page.goto("/executions/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("html")).to_have_attribute("data-clock", "local")


@pytest.mark.parametrize("chosen", ["", "light", "dark"])
@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_switch_of_the_theme_wins_over_the_system(
    page: Page, system: Literal["light", "dark"], chosen: str
) -> None:
    """Both ways to a theme lead to the same colours of the page and of its status."""
    page.emulate_media(color_scheme=system)
    page.goto("/machines/")
    page.evaluate(
        "theme => theme ? document.documentElement.dataset.theme = theme"
        " : delete document.documentElement.dataset.theme",
        chosen,
    )
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = (chosen or system) == "dark"
    assert shown == ("rgb(14, 19, 25)" if dark else "rgb(244, 246, 248)")


def test_a_link_works_once(browser: Browser, server: Server) -> None:
    """Opening it uses nothing up; its button lets one person in, by Enter, and no second one."""
    link = login_of(server, unique("linked"), "viewer")
    first, second = browser.new_context(), browser.new_context()
    scanner, late = first.new_page(), second.new_page()
    scanner.goto(link)
    scanner.goto(f"{server.url}/machines/")
    assert "/login/" in scanner.url
    late.goto(link)
    assert Axe().run(late).response["violations"] == []
    scanner.goto(link)
    expect(scanner.get_by_role("button", name="Sign in")).to_be_focused()
    scanner.keyboard.press("Enter")
    expect(scanner.locator("h1")).to_contain_text("Overview")
    late.get_by_role("button", name="Sign in").click()
    expect(late.locator("h1")).to_contain_text("no longer works")
    late.goto(f"{server.url}/machines/")
    assert "/login/" in late.url
    first.close()
    second.close()


def test_keys_move_and_stay_out_of_fields(page: Page) -> None:
    """Letters lead somewhere, but not while one types."""
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/machines/")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("g e ?")
    assert page.input_value("#q") == "g e ?"
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("dialog#help")).to_be_visible()
