"""Projects of every tool reach a real server by one command, and run there."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any

import pytest

from console.cli.branches import call
from console.cli.connection import add_connection_arguments, connect
from tests.acceptance.server import ROOT, Server, wait_for_end
from tests.features.deploy import projects
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]
ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:{}"
FUNCTIONS = json.dumps(
    dict.fromkeys(("price-dev", "shop-test-price", "Price"), f"{__name__}:price")
)
PASSES = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}


def price(event: Any, _: Any) -> Any:
    """Return a price, as a function of the project would."""
    return {"price": 42, "of": event}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A throw-away server, which knows the projects' functions."""
    data = tmp_path_factory.mktemp("deploy") / "data"
    options = ("--empty", "--allow-reset")
    server = Server(data, options=options, STATEYARD_FUNCTIONS=FUNCTIONS).start()
    yield server
    server.stop()


def run(server: Server, *words: object, code: int = 0) -> str:
    """Run a command beside the server, without any setting of AWS; return what it printed."""
    done = subprocess.run(
        command(server, *words),
        cwd=ROOT,
        env=clean(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def command(server: Server, *words: object) -> list[str]:
    """Return the command line."""
    options = ["--data", str(server.data)]
    return [sys.executable, "-m", "console.command_line", *map(str, words), *options]


def event_types(client: Any, arn: str) -> list[str]:
    """Return the types of the events of an execution."""
    events = client.get_execution_history(executionArn=arn)["events"]
    return [event["type"] for event in events]


def clean() -> dict[str, str]:
    """Return an environment without settings of AWS."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}


@pytest.fixture
def empty(server: Server) -> Any:
    """Empty the server; return a client of it."""
    assert "is empty" in run(server, "reset")
    client = server.client()
    assert client.list_state_machines()["stateMachines"] == []
    return client


def outcome(client: Any, name: str, data: str = "{}") -> Any:
    """Start a state machine; return its output."""
    started = client.start_execution(stateMachineArn=ARN.format(name), input=data)
    ended = wait_for_end(client, started["executionArn"])
    assert ended["status"] == "SUCCEEDED", ended
    return json.loads(ended["output"])


def test_a_project_of_sam(server: Server, empty: Any, tmp_path: Path) -> None:
    """Definitions, parameters, tags and events arrive; a second time nothing changes."""
    folder = projects.sam_project(tmp_path / "shop")
    words = ("deploy", folder, "--param", "TableName=orders-table")
    shown = run(server, *words)
    assert "+ state machine Orders: created" in shown
    assert "+ state machine quick-dev: created" in shown
    assert "left out: " in shown
    assert "event Web of type Api" in shown
    assert "OnlyProduction" not in shown
    assert outcome(empty, "Orders") == {"table": "orders-table", "day": "2026-01-02"}
    machine = empty.describe_state_machine(stateMachineArn=ARN.format("Orders"))
    assert machine["tracingConfiguration"] == {"enabled": True}
    assert machine["roleArn"].endswith(":role/OrdersRole")
    tags = empty.list_tags_for_resource(resourceArn=ARN.format("Orders"))["tags"]
    assert {"key": "team", "value": "shop"} in tags
    assert {tag["key"] for tag in tags} == {"team", "stateyard:deployed"}
    quick = empty.start_sync_execution(stateMachineArn=ARN.format("quick-dev"))
    assert quick["output"] == '"fast"'
    events = server.client("events")
    nightly = events.describe_rule(Name="Orders-Nightly")
    assert (nightly["ScheduleExpression"], nightly["State"]) == ("rate(1 day)", "DISABLED")
    (target,) = events.list_targets_by_rule(Rule="Orders-Nightly")["Targets"]
    assert (target["Arn"], target["Input"]) == (ARN.format("Orders"), '{"nightly": true}')
    assert "Orders-Placed" in {rule["Name"] for rule in events.list_rules()["Rules"]}
    again = run(server, *words)
    assert {line[0] for line in again.splitlines() if "left out" not in line} == {"="}


def test_schedules_are_schedules(server: Server, empty: Any, tmp_path: Path) -> None:
    """Those of a template and of SAM's events have group, time zone, window and retries."""
    folder = projects.sam_project(tmp_path / "shop")
    shown = run(server, "deploy", folder, "--param", "TableName=t")
    assert "+ schedule orders-monthly-dev: created" in shown
    assert "Elsewhere: a schedule without a state machine" in shown
    scheduler = server.client("scheduler")
    monthly = scheduler.get_schedule(Name="orders-monthly-dev", GroupName="reports")
    assert monthly["FlexibleTimeWindow"] == {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}
    assert monthly["StartDate"].year == 2099
    assert monthly["Target"]["Arn"] == ARN.format("Orders")
    assert monthly["Target"]["RoleArn"].endswith(":role/OrdersRole")
    weekly = scheduler.get_schedule(Name="Orders-Weekly")
    assert (weekly["ScheduleExpressionTimezone"], weekly["State"]) == ("Europe/Rome", "DISABLED")
    assert weekly["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 3
    universal = scheduler.get_schedule(Name="OrdersUniversal")["Target"]
    assert json.loads(universal["Input"]) == {"StateMachineArn": ARN.format("Orders")}
    assert universal["RoleArn"].endswith(":role/stateyard")  # only AWS knows it
    assert {rule["Name"] for rule in server.client("events").list_rules()["Rules"]} == {
        "Orders-Nightly",
        "Orders-Placed",
    }
    template = folder / "template.yaml"
    template.write_text(template.read_text("utf-8").replace("cron(0 6 ? * MON *)", "rate(7 days)"))
    again = run(server, "deploy", folder, "--param", "TableName=t", "--diff")
    assert "~ schedule Orders-Weekly: updated" in again
    assert '+  "ScheduleExpression": "rate(7 days)",' in again
    assert "= schedule orders-monthly-dev: unchanged" in again


def test_a_rule_in_the_place_of_a_schedule_goes(server: Server, empty: Any, tmp_path: Path) -> None:
    """An earlier version deployed schedules as rules: both would start the state machine."""
    path = projects.terraform_state(tmp_path / "state.json")
    run(server, "deploy", path)
    server.client("scheduler").delete_schedule(Name="hourly")
    events = server.client("events")
    for name, target in (("hourly", "machine"), ("theirs", "machine")):
        events.put_rule(Name=name, ScheduleExpression="cron(0 * * * ? *)")
        events.put_targets(Rule=name, Targets=[{"Id": target, "Arn": ARN.format("orders")}])
    shown = run(server, "deploy", path, "--diff")
    assert "-rule hourly, which was in the place of this schedule" in shown
    assert {rule["Name"] for rule in events.list_rules()["Rules"]} == {"nightly", "theirs"}
    assert "= schedule hourly: unchanged" in run(server, "deploy", path)


def test_a_parameter_without_a_value_is_named(server: Server, tmp_path: Path) -> None:
    """Nothing is deployed, and the line says what to add."""
    folder = projects.sam_project(tmp_path / "shop")
    assert "--param TableName=VALUE" in run(server, "deploy", folder, code=2)


def test_a_function_that_nobody_registered_is_named(
    server: Server, empty: Any, tmp_path: Path
) -> None:
    """The state machine is deployed, and the line says which state calls what."""
    function = "arn:aws:lambda:us-east-1:123456789012:function:"
    states = {
        "Stock": {"Type": "Task", "Resource": f"{function}stock-fn", "Next": "Price"},
        "Price": {"Type": "Task", "Resource": f"{function}price-dev:live", "Next": "Ship"},
        "Ship": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "ship"},
            "End": True,
        },
    }
    path = tmp_path / "orders.asl.json"
    path.write_text(json.dumps({"StartAt": "Stock", "States": states}), "utf-8")
    shown = run(server, "deploy", path)
    assert "+ state machine orders: created" in shown
    assert f"warning: {path}: State 'Stock' calls stock-fn: registered nowhere" in shown
    assert f"warning: {path}: State 'Ship' calls ship: registered nowhere" in shown
    assert "price-dev" not in shown


def test_an_assembly_of_the_cdk(server: Server, empty: Any, tmp_path: Path) -> None:
    """Joined definitions, assets and rules; names are those of the constructs."""
    run(server, "deploy", projects.cdk_project(tmp_path / "cdk.out"))
    assert outcome(empty, "Orders", "[1]") == {"price": 42, "of": [1]}
    assert outcome(empty, "from-asset", "[2]") == [2]
    events = server.client("events")
    (target,) = events.list_targets_by_rule(Rule="Nightly")["Targets"]
    assert target["Arn"] == ARN.format("Orders")


def test_a_service_of_serverless(server: Server, empty: Any, tmp_path: Path) -> None:
    """Variables, files, functions by their key, activities and events."""
    shown = run(server, "deploy", projects.serverless_project(tmp_path / "shop"))
    assert outcome(empty, "orders-test", "[1]") == {"price": 42, "of": [1]}
    assert empty.list_activities()["activities"][0]["name"] == "approve"
    assert "event 3 of type http" in shown
    events = server.client("events")
    assert events.describe_rule(Name="orders-test-1")["ScheduleExpression"] == "rate(1 hour)"
    (target,) = events.list_targets_by_rule(Rule="orders-test-1")["Targets"]
    assert json.loads(target["Input"]) == {"hourly": True}


def test_a_state_of_terraform(server: Server, empty: Any, tmp_path: Path) -> None:
    """Modules are searched; ARNs of another account become those of the server."""
    run(server, "deploy", projects.terraform_state(tmp_path / "state.json"))
    assert outcome(empty, "orders") == "from terraform"
    (target,) = server.client("events").list_targets_by_rule(Rule="nightly")["Targets"]
    assert target["Arn"] == ARN.format("orders")
    hourly = server.client("scheduler").get_schedule(Name="hourly")["Target"]
    assert (hourly["Arn"], hourly["Input"]) == (ARN.format("orders"), '{"hourly": true}')
    assert hourly["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 0}


def test_a_plan_that_knows_no_definition_yet_is_refused(server: Server, tmp_path: Path) -> None:
    """The line says which value is missing and what to show instead."""
    path = projects.terraform_state(tmp_path / "plan.json")
    text = path.read_text("utf-8").replace('"definition":', '"was":').replace('"values": {\n  "root', '"planned_values": {\n  "root')  # fmt: skip  # noqa: E501
    path.write_text(text, "utf-8")
    assert "known after apply" in run(server, "deploy", path, code=2)


def test_a_dry_run_shows_the_difference_and_changes_nothing(
    server: Server, empty: Any, tmp_path: Path
) -> None:
    """Created, unchanged but for spaces, changed: the diff has the lines."""
    path = tmp_path / "hello.asl.json"
    path.write_text(json.dumps(PASSES), "utf-8")
    assert "+ state machine hello: would create" in run(server, "deploy", path, "--dry-run")
    assert empty.list_state_machines()["stateMachines"] == []
    assert "created" in run(server, "deploy", path)
    path.write_text(json.dumps(PASSES, indent=4), "utf-8")
    assert run(server, "deploy", path) == "= state machine hello: unchanged\n"
    path.write_text(json.dumps(PASSES).replace("Pass", "Succeed").replace(', "End": true', ""))
    shown = run(server, "deploy", tmp_path, "--dry-run")
    assert "~ state machine hello: would update" in shown
    assert '-      "Type": "Pass",' in shown
    assert '+      "Type": "Succeed"' in shown
    assert "updated" in run(server, "deploy", tmp_path)
    machine = empty.describe_state_machine(stateMachineArn=ARN.format("hello"))
    assert "Succeed" in machine["definition"]


def test_only_what_a_stack_had_is_pruned_and_only_when_asked(
    server: Server, empty: Any, tmp_path: Path
) -> None:
    """A state machine of somebody else stays, and so does the rest of the stack without --prune."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.asl.json").write_text(json.dumps(PASSES), "utf-8")
    empty.create_state_machine(
        name="theirs", definition=json.dumps(PASSES), roleArn="arn:aws:iam::123456789012:role/r"
    )
    run(server, "deploy", tmp_path, "--stack", "shop")
    (tmp_path / "two.asl.json").unlink()
    names = lambda: {machine["name"] for machine in empty.list_state_machines()["stateMachines"]}  # noqa: E731
    run(server, "deploy", tmp_path, "--stack", "shop")
    assert names() == {"one", "two", "theirs"}
    assert "wanted the one" in run(server, "deploy", tmp_path, "--prune", code=2)
    assert "- state machine two: deleted" in run(
        server, "deploy", tmp_path, "--stack", "shop", "--prune"
    )
    wait_until(lambda: names() == {"one", "theirs"})


def test_one_that_the_server_refuses_does_not_keep_the_others(
    server: Server, empty: Any, tmp_path: Path
) -> None:
    """The exit code is 1 and the reason names file and state."""
    (tmp_path / "a-bad.asl.json").write_text('{"StartAt": "X", "States": {}}', "utf-8")
    (tmp_path / "good.asl.json").write_text(json.dumps(PASSES), "utf-8")
    shown = run(server, "deploy", tmp_path, code=1)
    assert "a-bad.asl.json: state machine a-bad: InvalidDefinition" in shown
    assert "+ state machine good: created" in shown
    assert outcome(empty, "good", "[1]") == [1]


def test_aws_itself_is_refused_unless_it_is_meant(server: Server, tmp_path: Path) -> None:
    """Whoever forgot the endpoint deploys to nobody's account."""
    (tmp_path / "hello.asl.json").write_text(json.dumps(PASSES), "utf-8")
    shown = run(
        server,
        *("deploy", tmp_path, "--endpoint-url", "https://states.us-east-1.amazonaws.com"),
        code=2,
    )
    assert "is AWS itself; --aws says that this is meant" in shown


def test_watch_deploys_again_when_a_file_changes(
    server: Server, empty: Any, tmp_path: Path
) -> None:
    """Also after a file was wrong for a while, and for a file that is new."""
    path = tmp_path / "hello.asl.json"
    path.write_text(json.dumps(PASSES), "utf-8")
    limited = ["timeout", "120", *command(server, "deploy", tmp_path, "--watch")]
    with subprocess.Popen(
        limited,
        cwd=ROOT,
        env=clean(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as watching:
        lines = iter(watching.stdout or ())
        assert next(lines) == "+ state machine hello: created\n"
        save(path, "{")
        while "hello" not in (line := next(lines)):
            pass
        assert "InvalidDefinition" in line
        save(path, json.dumps(PASSES | {"Comment": "mended"}))
        assert next(lines) == "~ state machine hello: updated\n"
        save(tmp_path / "new.asl.json", json.dumps(PASSES))
        while "new" not in (line := next(lines)):
            pass
        assert line == "+ state machine new: created\n"
        watching.terminate()
    assert len(empty.list_state_machines()["stateMachines"]) == 2


def save(path: Path, text: str) -> None:
    """Write a file as most editors do: nobody reads it before it is whole."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, "utf-8")
    draft.replace(path)


def test_start_waits_and_says_how_it_ended(server: Server, empty: Any, tmp_path: Path) -> None:
    """States go to stderr, the output to stdout; the exit code tells success from failure."""
    (tmp_path / "hello.asl.json").write_text(json.dumps(PASSES), "utf-8")
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Odd", "Cause": "why"}}}
    (tmp_path / "fails.asl.json").write_text(json.dumps(fails), "utf-8")
    run(server, "deploy", tmp_path)
    path = tmp_path / "input.json"
    path.write_text('{"n": 1}', "utf-8")
    done = subprocess.run(
        command(server, "start", "hello", "--input", path, "--wait"),
        cwd=ROOT,
        env=clean(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"n": 1}
    assert "P  entered" in done.stderr
    assert "P  left" in done.stderr
    assert "FAILED: Odd: why" in run(server, "start", "fails", "--wait", code=1)
    arn = run(server, "start", "hello", "--input", "[1]").strip()
    assert wait_for_end(empty, arn)["output"] == "[1]"
    assert "wanted a file, - or JSON" in run(server, "start", "hello", "--input", "x", code=2)
    stopped = run(server, "start", "hello", "--break-at", "P", "--name", "stopped").strip()
    assert empty.describe_execution(executionArn=stopped)["status"] == "RUNNING"
    again = run(server, "start", "hello", "--break-at", "P", "--name", "stopped", code=1)
    assert "Execution Already Exists" in again
    held = run(server, "start", "hello", "--break-at", "P if $not($states.input.n = 1)").strip()
    assert empty.describe_execution(executionArn=held)["status"] == "RUNNING"
    place = "P if $states.input.n = 1"
    assert "{}" in run(server, "start", "hello", "--break-at", place, "--wait").splitlines()
    refused = run(server, "start", "hello", "--break-at", "P if 1 =", code=2)
    assert "the breakpoint at P, condition: got '1 ='" in refused
    assert "got the state 'Q'" in run(server, "start", "hello", "--break-at", "Q if 1", code=2)
    assert "got the state 'Q'" in run(server, "start", "hello", "--break-at", "Q", code=2)
    words = ("--break-at", "P", "--break-when", "after", "--break-hits", 1)
    after = run(server, "start", "hello", *words).strip()
    wait_until(lambda: "PassStateEntered" in event_types(empty, after))
    for each in (stopped, held, after):
        assert empty.describe_execution(executionArn=each)["status"] == "RUNNING"
        empty.stop_execution(executionArn=each)
    often = ("--break-at", "P", "--break-hits", 2)
    assert "{}" in run(server, "start", "hello", *often, "--wait").splitlines()
    assert "must follow a --break-at" in run(server, "start", "a", "--break-hits", 2, code=2)
    refused = run(server, "start", "a", *often, "--break-hits", 3, code=2)
    assert "repeated for the breakpoint at P" in refused
    assert "invalid choice: 'late'" in run(server, "start", "a", "--break-when", "late", code=2)
    refused = run(server, "start", "hello", "--break-at", "P", "--break-hits", 0, code=2)
    assert "the breakpoint at P, hits: got 0, wanted 1 to" in refused


def test_start_takes_a_named_input(server: Server, empty: Any, tmp_path: Path) -> None:
    """With the current text of the input; an unknown name is refused."""
    (tmp_path / "hello.asl.json").write_text(json.dumps(PASSES), "utf-8")
    run(server, "deploy", tmp_path)
    parser = ArgumentParser()
    add_connection_arguments(parser)
    connection = connect(parser.parse_args(["--data", str(server.data)]))
    body = {"machine": "hello", "name": "card expired", "input": '{"card": "4000"}'}
    call(connection, "POST", "/api/inputs", body)
    arn = run(server, "start", "hello", "--input-name", "card expired").strip()
    assert wait_for_end(empty, arn)["output"] == '{"card": "4000"}'
    assert "card lost" in run(server, "start", "hello", "--input-name", "card lost", code=2)


@pytest.mark.parametrize("tool", ["asl", "sam", "cloudformation"])
def test_what_is_exported_can_be_deployed(
    server: Server, empty: Any, tmp_path: Path, tool: str
) -> None:
    """Out and in again: nothing has changed."""
    (tmp_path / "hello.asl.json").write_text(json.dumps(PASSES), "utf-8")
    run(server, "deploy", tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    file = out / ("hello.asl.json" if tool == "asl" else "template.yaml")
    file.write_text(run(server, "export", "hello", "--as", tool), "utf-8")
    assert run(server, "deploy", out) == "= state machine hello: unchanged\n"
    assert len(empty.list_state_machines()["stateMachines"]) == 1


def test_what_is_pulled_can_be_deployed_and_imported(
    server: Server, empty: Any, tmp_path: Path
) -> None:
    """Definition, tags, versions and aliases are in files; executions have their histories."""
    (tmp_path / "hello.asl.json").write_text(json.dumps(PASSES), "utf-8")
    run(server, "deploy", tmp_path)
    arn = ARN.format("hello")
    empty.tag_resource(resourceArn=arn, tags=[{"key": "team", "value": "shop"}])
    version = empty.publish_state_machine_version(stateMachineArn=arn)["stateMachineVersionArn"]
    route = {"stateMachineVersionArn": version, "weight": 100}
    empty.create_state_machine_alias(name="live", routingConfiguration=[route])
    started = empty.start_execution(stateMachineArn=arn, name="first", input="[1]")
    wait_for_end(empty, started["executionArn"])
    out = tmp_path / "out"
    assert run(server, "pull", "--to", out, "--executions", 5) == f"{out}/hello.asl.json\n"
    assert json.loads((out / "hello.asl.json").read_text("utf-8")) == PASSES
    about = json.loads((out / "hello.machine.json").read_text("utf-8"))
    assert about["tags"] == [{"key": "team", "value": "shop"}]
    assert about["versions"] == [version]
    assert about["aliases"][0]["routingConfiguration"] == [route]
    files = {path.name for path in (out / "executions/hello").iterdir()}
    assert files == {f"first.{part}.json" for part in ("history", "machine", "execution")}
    history = json.loads((out / "executions/hello/first.history.json").read_text("utf-8"))
    assert history["events"][0]["type"] == "ExecutionStarted"
    assert run(server, "deploy", out) == "= state machine hello: unchanged\n"
    assert run(server, "pull", "--to", out) == f"{out}/hello.asl.json: unchanged\n"
    assert "there is no state machine nobody" in run(server, "pull", "nobody", "--to", out, code=1)


def test_a_machine_pulled_elsewhere_shows_from_where(
    server: Server, empty: Any, tmp_path: Path
) -> None:
    """From one server to the other with its type; later changes there are a difference."""
    other = Server(tmp_path / "other", options=("--empty",)).start()
    try:
        arn = other.client().create_state_machine(
            name="fast",
            definition=json.dumps(PASSES),
            roleArn="arn:aws:iam::123456789012:role/x",
            type="EXPRESS",
        )["stateMachineArn"]
        out = tmp_path / "out"
        run(other, "pull", "--to", out)
        run(server, "deploy", out)
        machine = empty.describe_state_machine(stateMachineArn=ARN.format("fast"))
        assert machine["type"] == "EXPRESS"
        tags = empty.list_tags_for_resource(resourceArn=ARN.format("fast"))["tags"]
        assert {"key": "stateyard:source", "value": arn} in tags
        assert run(server, "deploy", out) == "= state machine fast: unchanged\n"
        changed = json.dumps({**PASSES, "Comment": "a hot fix"})
        other.client().update_state_machine(stateMachineArn=arn, definition=changed)
        shown = run(other, "pull", "--to", out, "--check", code=1)
        assert shown.startswith(f"{out}/fast.asl.json: changed\n")
        assert '  +  "Comment": "a hot fix"' in shown
        assert "hot fix" not in (out / "fast.asl.json").read_text("utf-8")
        assert run(other, "pull", "--to", out) == shown
        assert run(other, "pull", "--to", out, "--check") == f"{out}/fast.asl.json: unchanged\n"
        assert "hot fix" in run(server, "deploy", out, "--diff")
        (out / "fast.machine.json").unlink()
        values = ("--param", "Type=EXPRESS")
        assert "-tag stateyard:source" in run(server, "deploy", out, "--diff", *values)
    finally:
        other.stop()


def test_a_page_shows_what_changed_since_a_deployment(
    server: Server, empty: Any, tmp_path: Path
) -> None:
    """The tag has the hash of the text on the server, also where only the layout differs."""
    path = tmp_path / "Passes.asl.json"
    path.write_text(json.dumps(PASSES), encoding="utf-8")
    run(server, "deploy", path)

    def tag() -> str:
        listed = empty.list_tags_for_resource(resourceArn=ARN.format("Passes"))["tags"]
        return str(next(tag["value"] for tag in listed if tag["key"] == "stateyard:deployed"))

    def stored() -> str:
        machine = empty.describe_state_machine(stateMachineArn=ARN.format("Passes"))
        return hashlib.sha256(machine["definition"].encode()).hexdigest()

    first = tag()
    assert first == stored()
    path.write_text(json.dumps(PASSES, indent=4), encoding="utf-8")
    assert "unchanged" in run(server, "deploy", path)
    edited = {**PASSES, "Comment": "by hand"}
    empty.update_state_machine(stateMachineArn=ARN.format("Passes"), definition=json.dumps(edited))
    assert tag() == first != stored()
    path.write_text(json.dumps(edited, indent=2), encoding="utf-8")
    run(server, "deploy", path)
    assert tag() == stored()


def test_next_starts_are_set_listed_and_removed(server: Server, empty: Any, tmp_path: Path) -> None:
    """Whatever starts them next stops; wrong use is refused before a call."""
    (tmp_path / "hello.asl.json").write_text(json.dumps(PASSES), "utf-8")
    run(server, "deploy", tmp_path)
    assert run(server, "next_starts").strip() == "no breakpoints and no faults for the next starts"
    place = "P if $states.input = []"
    more = ("--break-at", "P", "--break-when", "error", "--break-hits", 3)
    numbers = ("--starts", 2, "--hours", 3)
    told = run(server, "next_starts", "hello", "--break-at", place, *more, *numbers)
    assert "hello: 0 of 2 starts taken, until " in told
    assert "  Stops before P, with a condition" in told
    assert "  Stops at an error of P, from hit 3 on" in told
    arn = run(server, "start", "hello", "--input", "[]").strip()
    assert empty.describe_execution(executionArn=arn)["status"] == "RUNNING"
    assert "hello: 1 of 2 starts taken" in run(server, "next_starts", "hello")
    twice = run(server, "next_starts", "hello", "--break-at", "P", code=1)
    assert "has set some for the next start: remove these first." in twice
    assert "removed: hello: 1 of 2" in run(server, "next_starts", "hello", "--remove")
    assert "They are gone" in run(server, "next_starts", "hello", "--remove", code=1)
    faults = tmp_path / "faults.yaml"
    faults.write_text("- state: P\n", "utf-8")
    refused = run(server, "next_starts", "hello", "--fault", faults, code=2)
    assert f"{faults}: faults[0].state: got P, a Pass" in refused
    both = run(server, "next_starts", "hello", "--fault", faults, "--fault", faults, code=2)
    assert "--fault: got two files, wanted one" in both
    faults.write_text("- state: P\n  state: Q\n", "utf-8")
    warned = run(server, "start", "hello", "--fault", faults, code=2)
    assert f"warning: {faults}: line 2: the key 'state' stands twice" in warned
    for words in (("--remove",), ("hello", "--starts", 2), ("hello", "--remove", "--hours", 1)):
        assert "expected" in run(server, "next_starts", *words, code=2)
    empty.stop_execution(executionArn=arn)
