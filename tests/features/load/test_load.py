"""``stateyard load``: a constant rate of starts, measured from the times at which they were due."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from console import command_line
from console.cli.documents import SourceError
from console.config.aws_rates import AwsRate, start_rate, transition_rate
from console.features.load import measuring as load
from console.features.load.cli import _parse_lines, _read_delayed, _read_rate, _read_seconds
from console.features.load.measuring import LoadPlan, LoadRun, Measurements, percentiles
from console.features.load.report import aws_limits, report_of, write_text
from tests.acceptance.server import ROOT, Server, free_port
from tests.console.store.helpers import ROLE
from tests.features.deploy.test_deploy import clean, command
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
ODD = {
    "StartAt": "Odd",
    "States": {
        "Odd": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.odd", "BooleanEquals": True, "Next": "Bad"}],
            "Default": "Good",
        },
        "Bad": {"Type": "Fail", "Error": "Card.Declined", "Cause": "odd"},
        "Good": {"Type": "Succeed"},
    },
}
SLOW = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3600, "End": True}}}


def plan(**fields: Any) -> LoadPlan:
    """Return a plan."""
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:m"
    usual: dict[str, Any] = {"machine_arn": arn, "rate": 10, "seconds": 1, "inputs": ["{}"]}
    return LoadPlan(**usual | {"name": "load-1"} | fields)


# -- without a server ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ('{"a": 1}\n{"a": 2}\n', ['{"a": 1}', '{"a": 2}']),
        ('\ufeff{"a": 1}\r\n\r\n  [2]  \r\n"x"', ['{"a": 1}', "[2]", '"x"']),
        ('{\n  "a": 1\n}\n', ['{\n  "a": 1\n}']),
        ('\ufeff{\n"a": 1}', ['{\n"a": 1}']),
        ("7\n8", ["7", "8"]),
        ('"a\u2028b"\r"c\x85d"', ['"a\u2028b"', '"c\x85d"']),
    ],
)
def test_each_line_is_an_input(text: str, inputs: list[str]) -> None:
    """Lines of Windows, a mark at the beginning and blank lines are fine; so is one document."""
    assert _parse_lines(text, "file") == inputs


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "file: got no input, wanted one in JSON on each line"),
        ("\n \r\n", "file: got no input, wanted one in JSON on each line"),
        ('{"a": 1}\n\n{"a": }\n', "file:3: got '{\"a\": }', wanted JSON"),
        ("a: 1\n", "file:1: got 'a: 1', wanted JSON"),
    ],
)
def test_a_bad_line_is_named(text: str, problem: str) -> None:
    """The file, the line, what is there and what is wanted."""
    with pytest.raises(SourceError) as refusal:
        _parse_lines(text, "file")
    assert str(refusal.value) == problem


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "2001", "fast", ""])
def test_bad_rates_are_refused(text: str) -> None:
    """A rate is above 0 and at most 2,000."""
    with pytest.raises(
        SourceError, match=r"^--rate: got .*, wanted a number above 0, up to 2,000$"
    ):
        _read_rate(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5m", 300), ("1h", 3600), ("1.5", 1.5)]
)
def test_durations(text: str, seconds: float) -> None:
    """Seconds without a unit."""
    assert _read_seconds("--for", text) == seconds


@pytest.mark.parametrize("text", ["0s", "-1s", "1d", "m", "1 m", "٣s", ""])
def test_bad_durations_are_refused(text: str) -> None:
    """The option is named."""
    with pytest.raises(SourceError, match=r"^--for: got .*, wanted a duration as 60s, 5m or 1h$"):
        _read_seconds("--for", text)


class StalledStates:
    """A service that answers each call after a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def start_execution(self, **_: str) -> dict[str, Any]:
        """Answer late."""
        time.sleep(self.seconds)
        return {"startDate": datetime.now(UTC)}


def test_latency_counts_from_the_due_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that waits for its turn behind a slow call has waited, too.

    With one call at a time of 0.3 s and a start due each 0.1 s, the n-th answer comes after
    (n + 1) x 0.3 s at the earliest and was due at n x 0.1 s. Measured from the call, all would have
    taken 0.3 s.
    """
    monkeypatch.setattr(load, "MOST_AT_ONCE", 1)
    run = LoadRun(StalledStates(0.3), plan(seconds=0.5, express=True), lambda _: None)
    measured = run.run()
    assert len(measured.calls) == 5
    for number, latency in enumerate(sorted(measured.calls)):
        assert latency >= 0.3 + 0.2 * number
    assert measured.late >= 1
    assert measured.first["client"][1] > 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_answer_without_a_date_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers so ends the thread of the call, and the run ends, too."""
    states = StalledStates(0)
    monkeypatch.setattr(states, "start_execution", lambda **_: {})
    measured = LoadRun(states, plan(seconds=0.3, express=True), lambda _: None).run()
    assert measured.sent == 3


class LongList(StalledStates):
    """A service with a long list that has none of the new executions yet."""

    pages = 0

    def list_executions(self, **_: Any) -> dict[str, Any]:
        """Return a page of two executions: the n-th page is of n hours ago."""
        started = datetime.now(UTC) - timedelta(hours=self.pages)
        self.pages += 1
        row = {"name": "another", "status": "SUCCEEDED", "startDate": started}
        return {"executions": [row, row], "nextToken": "more"}


def test_older_executions_are_not_listed() -> None:
    """The search for ends stops at the first page that is older than the run."""
    states = LongList(0)
    run = LoadRun(states, plan(), lambda _: None)
    run._began_epoch = time.time()
    run._accepted["load-1-000001"] = 0.0
    run._look_for_ends()
    assert (states.pages, run.measured.look_error) == (2, "")


def delay_metric(begin: datetime, **counts: int) -> Any:
    """Return a connection whose metric has delayed transitions by minute of a run."""
    points = [
        {"Timestamp": begin + timedelta(minutes=int(minute[1:])), "Sum": float(count)}
        for minute, count in counts.items()
    ]
    client = SimpleNamespace(get_metric_statistics=lambda **_: {"Datapoints": points})
    return SimpleNamespace(client=lambda _: client)


def test_a_delay_counts_from_the_end_of_its_minute() -> None:
    """The metric has no exact times, so a throttled start of the same minute comes first."""
    minute = datetime(2026, 1, 1, 12, tzinfo=UTC)
    began = minute + timedelta(seconds=20)
    measured = Measurements(sent=900, took_s=90.0)
    connection = delay_metric(minute, m0=0, m1=4, m2=3)
    assert _read_delayed(connection, plan(seconds=90), measured, began) == 7
    assert measured.first == {"state-transitions": (90.0, 900)}
    measured = Measurements(sent=900, took_s=90.0)
    measured.note_first("start-rate", 30.0, 300)
    _read_delayed(delay_metric(minute, m0=5), plan(seconds=90), measured, began)
    assert measured.first["state-transitions"] == (40.0, 400)
    report = report_of(plan(seconds=90), measured, delayed=5, aws=[])
    assert report["firstLimit"]["kind"] == "start-rate"


def test_percentiles_are_of_the_nearest_rank() -> None:
    """In milliseconds; none of nothing."""
    assert percentiles([]) == {}
    values = [each / 1000 for each in range(1, 101)]
    assert percentiles(values[::-1]) == {"p50": 50.0, "p90": 90.0, "p99": 99.0, "max": 100.0}


def test_rates_of_aws_are_those_of_the_region() -> None:
    """Three large regions have more; Express has no limit of transitions."""
    assert start_rate("us-east-1", express=False) == (1_300, 300)
    assert start_rate("eu-central-1", express=False) == (800, 150)
    assert start_rate("eu-central-1", express=True) == (6_000, 6_000)
    assert transition_rate("eu-west-1").refill == 5_000
    assert transition_rate("ap-northeast-1").bucket == 800


@pytest.mark.parametrize(
    ("rate", "seconds", "per_execution", "limits"),
    [
        (50, 60, 5, []),
        (125, 60, None, [("StartExecution", None)]),
        (250, 4, None, [("StartExecution", None)]),
        (250, 60, None, [("StartExecution", 8.0)]),
        (100, 60, 7, [("StateTransition", None)]),
        (100, 60, 16, [("StateTransition", 1.0)]),
    ],
)
def test_rates_near_those_of_aws_are_named(
    rate: float, seconds: float, per_execution: int | None, limits: list[tuple[str, float | None]]
) -> None:
    """From 80 % on; with the time after which a full bucket is empty, if the run lasts so long."""
    rows = aws_limits(
        plan(rate=rate, seconds=seconds), AwsRate(800, 150), AwsRate(800, 800), per_execution
    )
    assert [(row["limit"], row["emptyAfterSeconds"]) for row in rows] == limits


def test_the_first_limit_is_no_error_of_the_workflow() -> None:
    """A failure that the definition wants is no limit; the earliest limit is named."""
    measured = Measurements(sent=10)
    measured.failures["Card.Declined"] = measured.failures["Lambda.TooManyRequestsException"] = 1
    measured.note_first("Card.Declined", 0.1, 1)
    report = report_of(plan(), measured, delayed=None, aws=[])
    assert report["firstLimit"] is None
    measured.note_first("Lambda.TooManyRequestsException", 3.04, 31)
    measured.refusals["ThrottlingException"] = 2
    measured.note_first("start-rate", 2.06, 21)
    measured.note_first("start-rate", 4.0, 40)
    report = report_of(plan(), measured, delayed=None, aws=[])
    assert report["firstLimit"] == {
        "kind": "start-rate",
        "seconds": 2.1,
        "start": 21,
        "words": "starts were throttled",
    }
    assert "first limit starts were throttled, after 2.1 s, start 21" in write_text(report)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--rate", "x", "--for", "1s"], "--rate: got 'x'"),
        (["--rate", "1", "--for", "1y"], "--for: got '1y'"),
        (["--rate", "1", "--for", "1s", "--settle", "z"], "--settle: got 'z'"),
        (["--rate", "100", "--for", "1h"], "got 360,000 starts, wanted at most 200,000"),
        (
            ["--rate", "1", "--for", "1s", "--input", "/nowhere/inputs.jsonl"],
            "/nowhere/inputs.jsonl: No such",
        ),
    ],
)
def test_wrong_use_ends_with_2(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a server is asked."""
    with pytest.raises(SystemExit) as end:
        command_line.main(["load", "m", *words])
    assert end.value.code == 2
    assert problem in capsys.readouterr().err


# -- with a server ---------------------------------------------------------------------------------


def running(folder: Path, quotas: dict[str, Any] | None = None) -> Server:
    """Start a server with quotas."""
    data = folder / "data"
    data.mkdir()
    (data / "quotas.json").write_text(json.dumps(quotas or {}))
    return Server(data, options=("--empty",)).start()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server without rates."""
    server = running(tmp_path_factory.mktemp("load"))
    yield server
    server.stop()


def create(server: Server, name: str, definition: Any, kind: str = "STANDARD") -> str:
    """Create a state machine."""
    return str(
        server.client().create_state_machine(
            name=name, definition=json.dumps(definition), roleArn=ROLE, type=kind
        )["stateMachineArn"]
    )


def loaded(server: Server, *words: object, code: int = 0) -> tuple[dict[str, Any], str]:
    """Run a load; return the report and the progress."""
    done = subprocess.run(
        command(server, "load", *words, "--format", "json"),
        cwd=ROOT,
        env=clean(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.acceptance
@pytest.mark.slow
def test_all_starts_of_a_rate_are_made(server: Server, tmp_path: Path) -> None:
    """The inputs come in turn; each end is known, and no latency of an end is below its start's."""
    arn = create(server, "turns", ODD)
    path = tmp_path / "inputs.jsonl"
    path.write_bytes(
        b'{"odd": false, "n": 1}\r\n{"odd": true, "n": 2}\r\n{"odd": false, "n": 3}\r\n'
    )
    report, progress = loaded(
        server, "turns", "--rate", "20", "--for", "3s", "--input", path, code=1
    )
    assert report["planned"] == report["sent"] == report["accepted"] == 60
    assert report["executions"] == {"SUCCEEDED": 40, "FAILED": 20, "RUNNING": 0}
    assert report["failed"] == {"Card.Declined": 20}
    assert report["refused"] == {}
    assert report["firstLimit"] is None
    assert report["seconds"] >= 3
    latency = report["latency"]
    assert 0 < latency["start"]["p50"] <= latency["start"]["max"]
    assert latency["end"]["max"] > 0
    assert "of 60 sent" in progress
    client = server.client()
    rows = client.list_executions(stateMachineArn=arn)["executions"]
    inputs = {
        int(row["name"].rpartition("-")[2]): json.loads(
            client.describe_execution(executionArn=row["executionArn"])["input"]
        )["n"]
        for row in rows
    }
    assert [inputs[number] for number in range(1, 61)] == [1, 2, 3] * 20


@pytest.mark.acceptance
@pytest.mark.slow
def test_executions_that_run_on_are_counted(server: Server) -> None:
    """The command waits for them as long as ``--settle`` says."""
    create(server, "slow", SLOW)
    report, _ = loaded(server, "slow", "--rate", "10", "--for", "1s", "--settle", "1s", code=1)
    assert report["executions"] == {"RUNNING": 10}
    assert report["latency"]["end"] == {}


@pytest.mark.acceptance
@pytest.mark.slow
def test_express_is_measured_by_its_answers(server: Server) -> None:
    """Without ``--sync`` nobody lists their ends, which is said; Standard has no ``--sync``."""
    create(server, "quick", PASS, "EXPRESS")
    report, _ = loaded(server, "quick", "--rate", "10", "--for", "1s", "--sync")
    assert report["executions"] == {"SUCCEEDED": 10, "RUNNING": 0}
    assert report["latency"]["start"] == {}
    assert report["latency"]["end"]["p50"] > 0
    report, _ = loaded(server, "quick", "--rate", "10", "--for", "1s")
    assert report["accepted"] == 10
    assert report["latency"]["start"]["p50"] > 0
    assert "--sync" in report["endsUnknown"]
    create(server, "usual", PASS)
    words = ("load", "usual", "--rate", "1", "--for", "1s", "--sync")
    done = subprocess.run(
        command(server, *words), cwd=ROOT, env=clean(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--sync: got a STANDARD state machine, wanted EXPRESS" in done.stderr


@pytest.mark.acceptance
@pytest.mark.slow
def test_ctrl_c_ends_with_the_report(server: Server) -> None:
    """It is printed soon, and says how many starts were made."""
    create(server, "long", PASS)
    words = command(server, "load", "long", "--rate", "20", "--for", "1h", "--format", "json")
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=clean(),
        text=True,
        # a shell starts what runs in its background with Ctrl+C ignored, and so all its children
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    with process:
        try:
            assert process.stderr is not None
            assert "of 72,000 sent" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            printed, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    report = json.loads(printed)
    assert process.returncode == 1
    assert report["interrupted"] is True
    assert 0 < report["sent"] < 72_000
    assert report["accepted"] == report["sent"]
    assert report["executions"]["SUCCEEDED"] + report["executions"]["RUNNING"] == report["sent"]
    assert "Traceback" not in errors


@pytest.mark.acceptance
@pytest.mark.slow
def test_the_rate_of_starts_comes_first(tmp_path: Path) -> None:
    """A throttled start is not repeated: it is a result."""
    server = running(tmp_path, {"start_execution": {"bucket": 10, "refill": 5}})
    try:
        create(server, "limited", PASS)
        report, _ = loaded(server, "limited", "--rate", "20", "--for", "3s", code=1)
        assert report["throttled"] > 0
        assert report["throttled"] + report["accepted"] == 60
        assert report["refused"] == {"ThrottlingException": report["throttled"]}
        assert report["firstLimit"]["kind"] == "start-rate"
        assert 10 < report["firstLimit"]["start"] < 40
    finally:
        server.stop()


@pytest.mark.acceptance
@pytest.mark.slow
def test_the_rate_of_transitions_comes_first(tmp_path: Path) -> None:
    """Delayed transitions are those of the server's own metric."""
    server = running(tmp_path, {"state_transition": {"bucket": 10, "refill": 10}})
    try:
        create(server, "limited", PASS)
        report, _ = loaded(server, "limited", "--rate", "20", "--for", "2s")
        assert report["delayedTransitions"] > 0
        assert report["firstLimit"]["kind"] == "state-transitions"
        assert report["executions"] == {"SUCCEEDED": 40, "RUNNING": 0}
    finally:
        server.stop()


@pytest.mark.acceptance
def test_no_server_ends_with_2() -> None:
    """With the reason."""
    words = [
        sys.executable,
        "-m",
        "console.command_line",
        "load",
        "m",
        "--rate",
        "1",
        "--for",
        "1s",
    ]
    keys = {
        "AWS_ACCESS_KEY_ID": "A",
        "AWS_SECRET_ACCESS_KEY": "B",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    address = ["--endpoint-url", f"http://127.0.0.1:{free_port()}"]
    done = subprocess.run(
        [*words, *address],
        cwd=ROOT,
        env=clean() | keys,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Could not connect" in done.stderr
    assert done.stdout == ""
