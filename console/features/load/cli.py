"""``stateyard load``: starts executions at a constant rate, and reports latency and limits."""

from __future__ import annotations

import json
import math
import re
import secrets
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

import engine
from console.cli.commands import FAILED
from console.cli.connection import (
    SYNC_ANSWER_S,
    ConnectionRefused,
    add_connection_arguments,
    connect,
)
from console.cli.documents import SourceError, read_text
from console.cli.output import write_line
from console.config.aws_rates import start_rate, transition_rate
from console.features.load.measuring import MOST_AT_ONCE, MOST_STARTS, LoadPlan, LoadRun
from console.features.load.report import WRITERS, aws_limits, report_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.cli.connection import Connection
    from console.features.load.measuring import Measurements

SUMMARY = "start executions of a state machine at a constant rate; report latency and limits"
_UNITS = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smh]?)", re.ASCII)
_MOST_RATE = 2_000.0
_MOST_PAGES = 25
_CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 1},  # a refused call is a result
    max_pool_connections=MOST_AT_ONCE,
    read_timeout=SYNC_ANSWER_S,
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the state machine, the load, the inputs and the format."""
    parser.add_argument("machine", metavar="NAME", help="name or ARN, also of a version or alias")
    parser.add_argument("--rate", required=True, metavar="N", help="starts a second, as 50 or 0.5")
    parser.add_argument(
        "--for", required=True, dest="duration", metavar="60s", help="how long, as 60s, 5m or 1h"
    )
    parser.add_argument(
        "--input",
        default="{}",
        metavar="FILE",
        help="a file with an input in JSON on each line, chosen in turn; - for stdin, or JSON",
    )
    parser.add_argument(
        "--sync", action="store_true", help="use StartSyncExecution, of an Express state machine"
    )
    parser.add_argument(
        "--settle",
        default="60s",
        metavar="60s",
        help="how long to wait for the ends of executions after the last start (default: 60s)",
    )
    parser.add_argument("--format", choices=WRITERS, default="text")
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Return 0: all starts succeeded, 1: not all."""
    load = _read_load(options)
    connection = connect(options)
    plan = _make_plan(connection, options, load)
    client = connection.client("stepfunctions", _CONFIG)
    began = datetime.now(UTC)
    measured = LoadRun(client, plan, _write_progress).run()
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    report = _report(connection, plan, measured, began)
    write_line(WRITERS[options.format](report))
    good = measured.sent == plan.total and not (
        measured.refusals or measured.failures or measured.running or measured.look_error
    )
    return 0 if good else FAILED


def _read_load(options: Namespace) -> dict[str, Any]:
    """Return the fields of the plan that need no server."""
    load = {
        "rate": _read_rate(options.rate),
        "seconds": _read_seconds("--for", options.duration),
        "settle_s": _read_seconds("--settle", options.settle),
    }
    if (total := int(load["rate"] * load["seconds"])) > MOST_STARTS:
        got = f"--rate and --for: got {total:,} starts"
        raise SourceError(f"{got}, wanted at most {MOST_STARTS:,}")
    return {**load, "inputs": _read_inputs(options.input), "sync": options.sync}


def _make_plan(connection: Connection, options: Namespace, load: dict[str, Any]) -> LoadPlan:
    arn = connection.machine_arn(options.machine)
    machine_arn = ":".join(arn.split(":")[:7])
    machine = connection.states.describe_state_machine(stateMachineArn=machine_arn)
    if options.sync and machine["type"] != "EXPRESS":
        raise SourceError(f"--sync: got a {machine['type']} state machine, wanted EXPRESS")
    name = f"load-{secrets.token_hex(4)}"
    return LoadPlan(machine_arn=arn, name=name, express=machine["type"] == "EXPRESS", **load)


def _read_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate <= _MOST_RATE:
        got = f"--rate: got {text[:40]!r}"
        raise SourceError(f"{got}, wanted a number above 0, up to {_MOST_RATE:,g}")
    return rate


def _read_seconds(option: str, text: str) -> float:
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _UNITS[match[2] or "s"] if match else 0.0
    if not seconds:
        raise SourceError(f"{option}: got {text[:40]!r}, wanted a duration as 60s, 5m or 1h")
    return seconds


def _read_inputs(word: str) -> list[str]:
    """Return the inputs as JSON texts: the lines of a file or of stdin, or a single input."""
    if word.lstrip().startswith(("{", "[", '"')):
        return _parse_lines(word, "--input")
    if word == "-":
        return _parse_lines(sys.stdin.read(), "standard input")
    return _parse_lines(read_text(Path(word)), word)


def _parse_lines(text: str, place: str) -> list[str]:
    """Return the JSON texts on the lines of a text; a document of several lines is one."""
    text = text.removeprefix("\ufeff")
    lines = [
        # not splitlines: a text in JSON may have U+2028
        (number, line)
        for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1)
        if line.strip()
    ]
    if not lines:
        raise SourceError(f"{place}: got no input, wanted one in JSON on each line")
    for number, line in lines:
        if not _is_json(line):
            if _is_json(text):
                return [text.strip()]
            raise SourceError(f"{place}:{number}: got {line.strip()[:60]!r}, wanted JSON")
    return [line.strip() for _, line in lines]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _write_progress(text: str) -> None:
    """Print a line of progress to stderr; a terminal shows the newest one only."""
    end = "\r" if sys.stderr.isatty() else "\n"
    sys.stderr.write(f"{text:<78}{end}" if end == "\r" else f"{text}\n")
    sys.stderr.flush()


def _report(
    connection: Connection, plan: LoadPlan, measured: Measurements, began: datetime
) -> dict[str, Any]:
    """Return the report, with the server's metric of delayed transitions."""
    region = plan.machine_arn.split(":")[3]
    delayed = transitions = None
    if not plan.express:
        delayed = _read_delayed(connection, plan, measured, began)
        transitions = _read_transitions(connection, plan)
    aws = aws_limits(
        plan, start_rate(region, express=plan.express), transition_rate(region), transitions
    )
    return report_of(plan, measured, delayed=delayed, aws=aws)


def _read_delayed(
    connection: Connection, plan: LoadPlan, measured: Measurements, began: datetime
) -> int | None:
    """Return the delayed transitions of the run's minutes; None if the server has no metric."""
    start = began.replace(second=0, microsecond=0)
    arn = ":".join(plan.machine_arn.split(":")[:7])
    try:
        answer = connection.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/States",
            MetricName="ThrottledEvents",
            Dimensions=[
                {"Name": "ServiceMetric", "Value": "StateTransition"},
                {"Name": "StateMachineArn", "Value": arn},
            ],
            StartTime=start,
            EndTime=datetime.now(UTC) + timedelta(minutes=1),
            Period=60,
            Statistics=["Sum"],
        )
    except (BotoCoreError, ClientError, ConnectionRefused):
        return None
    points = [point for point in answer["Datapoints"] if point["Sum"]]
    if points:
        # The metric has minutes only: the first delay came by the end of this one.
        end = min(point["Timestamp"] for point in points) + timedelta(minutes=1)
        at_s = min((end - began).total_seconds(), measured.took_s)
        number = min(math.ceil(at_s * plan.rate), measured.sent)
        measured.note_first("state-transitions", at_s, number)
    return int(sum(point["Sum"] for point in points))


def _read_transitions(connection: Connection, plan: LoadPlan) -> int | None:
    """Return the states that an ended execution of the run entered; None without one."""
    arn = ":".join(plan.machine_arn.split(":")[:7])
    try:
        listed = connection.states.list_executions(stateMachineArn=arn, maxResults=100)
        rows = [row for row in listed["executions"] if row["name"].startswith(plan.name)]
        ended = next((row for row in rows if row["status"] != "RUNNING"), None)
        if ended is None:
            return None
        pages = connection.states.get_paginator("get_execution_history").paginate(
            executionArn=ended["executionArn"],
            includeExecutionData=False,
            PaginationConfig={"PageSize": 1_000, "MaxItems": _MOST_PAGES * 1_000},
        )
        types = [event["type"] for page in pages for event in page["events"]]
    except (BotoCoreError, ClientError):
        return None
    return len([kind for kind in types if kind in engine.event_types.STATE_ENTRIES])
