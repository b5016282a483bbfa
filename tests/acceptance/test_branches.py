"""Two branches of one project at once, by the commands, on a real server."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta
from functools import partial
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any

import pytest
from urllib3.connectionpool import HTTPConnectionPool

from console import command_line
from tests.acceptance.server import ROOT, Server
from tests.postgres import Postgres
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
SUITE = """
import os, sys, time, boto3
word, meeting = sys.argv[1:]
sfn = boto3.client("stepfunctions")
account = boto3.client("sts").get_caller_identity()["Account"]
assert account == os.environ["AWS_ACCOUNT_ID"]
arn = f"arn:aws:states:{os.environ['AWS_REGION']}:{account}:stateMachine:orders"
open(f"{meeting}/{word}", "w").close()
while len(os.listdir(meeting)) < 2:  # both suites run at the same time
    time.sleep(0.05)
execution = sfn.start_execution(stateMachineArn=arn)["executionArn"]
while (answer := sfn.describe_execution(executionArn=execution))["status"] == "RUNNING":
    time.sleep(0.05)
assert answer.get("output") == f'"{word}"', answer
print(execution)
"""
PAGES = [
    *("/", "/machines/", "/machines/orders/", "/machines/orders/insights/", "/executions/"),
    *("/failures/", "/alarms/", "/palette/?q=orders", "/executions/?q=orders"),
]
"""Of the parent: lists, metrics, alarms and Ctrl+K."""


def definition(result: str) -> str:
    """Return a state machine with a result, or one that fails with an error."""
    state: dict[str, Any] = {"Type": "Pass", "Result": result, "End": True}
    if result.startswith("Error"):
        state = {"Type": "Fail", "Error": result, "Cause": "as meant"}
    return json.dumps({"StartAt": "P", "States": {"P": state}})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An empty server."""
    data = tmp_path_factory.mktemp("branches") / "data"
    server = Server(data, options=("--empty",)).start()
    yield server
    server.stop()


def begin(server: Server, *words: str, **more: str) -> subprocess.Popen[str]:
    """Begin a command beside the server, without any other setting of AWS."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    name, *rest = words
    place = ["--data", str(server.data)]
    at = 2 if name == "branch" else 0
    words = (*rest[:at], *place, *rest[at:])
    return subprocess.Popen(
        [sys.executable, "-m", "console.command_line", name, *words],
        cwd=ROOT,
        env={**clean, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(server: Server, *words: str, code: int = 0, more: dict[str, str] | None = None) -> str:
    """Run a command to its end; return what it printed."""
    process = begin(server, *words, **(more or {}))
    printed, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, printed
    return printed


def deploy(
    server: Server, folder: Path, result: str, *words: str, more: dict[str, str] | None = None
) -> str:
    """Deploy the state machine orders with a result."""
    folder.mkdir(exist_ok=True)
    (folder / "orders.asl.json").write_text(definition(result))
    return run(server, "deploy", str(folder), *words, more=more)


def test_two_branches_change_one_machine_at_once(server: Server, tmp_path: Path) -> None:
    """Both suites pass at the same time; the parent sees nothing of it; their end leaves no row."""
    check_two_branches(server, tmp_path, partial(ask_sqlite, server))
    third, more = ("--branch", "feature/three"), {"GITHUB_ACTIONS": "true"}
    masked = deploy(server, tmp_path / "x", "x", *third, more=more)
    assert masked.index("::add-mask::") < masked.index("AWS_SECRET_ACCESS_KEY=")


@pytest.mark.postgres_only
def test_two_branches_change_one_machine_on_postgresql(tmp_path: Path) -> None:
    """As on SQLite."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stateyard-branches-"))
    folder.chmod(0o755)
    database = Postgres(folder / "pg")
    options, url = ("--empty",), database.url
    server = Server(
        tmp_path / "data", options=options, migrated=False, STATEYARD_DATABASE_URL=url
    ).start()
    try:
        check_two_branches(server, tmp_path, database.ask)
    finally:
        server.stop()
        database.stop("fast")
        shutil.rmtree(folder, ignore_errors=True)


def check_two_branches(server: Server, tmp_path: Path, ask: Callable[[str], list[Any]]) -> None:
    """Let the suites of two branches meet; look for them in their parent, and after their end."""
    deploy(server, tmp_path / "main", "main")
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    accounts = []
    for word in ("one", "two"):
        printed = deploy(server, tmp_path / word, word, "--branch", f"feature/{word}")
        assert f"branch feature/{word} of default: project default~feature~{word}" in printed
        assert "AWS_SECRET_ACCESS_KEY=" in printed
        assert "~ state machine orders: updated" in printed
        accounts += re.findall(r"account (\d{12})", printed)
    again = deploy(server, tmp_path / "one", "one", "--branch", "feature/one", "--ttl", "1h")
    assert "SECRET" not in again
    assert "= state machine orders: unchanged" in again
    suites = [
        begin(
            server,
            *("branch", "run", f"feature/{word}", "--tests", "--"),
            *(sys.executable, "-c", SUITE, word, str(meeting)),
        )
        for word in ("one", "two")
    ]
    outputs = [suite.communicate(timeout=PATIENCE_S)[0] for suite in suites]
    assert [suite.returncode for suite in suites] == [0, 0], outputs
    executions = [output.strip().rpartition(":")[2] for output in outputs]
    check_parent(server, [*accounts, *executions])
    assert run(server, "branch", "list").count("feature/") == 2
    tables = {"console_execution", "console_project", "console_statemachine", "console_tag"}
    assert tables <= mentions(ask, [*accounts, *executions])
    ask("UPDATE console_branch SET expires_ms = 1 WHERE name LIKE 'feature/%' RETURNING name")
    traces = [*accounts, *executions, "default~feature~"]
    wait_until(lambda: mentions(ask, traces) <= {"console_auditentry"})
    entries = "SELECT action FROM console_auditentry WHERE target LIKE 'default~feature~%'"
    assert {action for (action,) in ask(entries)} == {"DeleteProject"}
    assert "feature/" not in run(server, "branch", "list")


def check_parent(server: Server, traces: list[str]) -> None:
    """Look into the parent by API and pages, for what is of its branches."""
    client = server.client()
    arn = client.list_state_machines()["stateMachines"][0]["stateMachineArn"]
    assert client.list_executions(stateMachineArn=arn)["executions"] == []
    assert '"main"' in client.describe_state_machine(stateMachineArn=arn)["definition"]
    metrics, now = server.client("cloudwatch"), datetime.now(UTC)
    counted = metrics.get_metric_statistics(
        Namespace="AWS/States",
        MetricName="ExecutionsStarted",
        Dimensions=[{"Name": "StateMachineArn", "Value": arn}],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=5),
        Period=3600,
        Statistics=["Sum"],
    )
    assert sum(point["Sum"] for point in counted["Datapoints"]) == 0
    assert metrics.describe_alarms()["MetricAlarms"] == []
    browser = signed_in(server)
    for page in PAGES:
        text = browser.open(server.url + page).read().decode()
        assert "orders" in text or page in ("/failures/", "/alarms/", "/executions/"), page
        assert not [trace for trace in traces if trace in text], page


def signed_in(server: Server) -> urllib.request.OpenerDirector:
    """Return a browser without JavaScript, signed in by a link."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    link = server.login_url()
    token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', opener.open(link).read().decode())
    assert token is not None
    body = urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode()
    opener.open(urllib.request.Request(link, body, {"Referer": link})).close()
    return opener


def ask_sqlite(server: Server, sql: str) -> list[Any]:
    """Run a statement beside the server; return its rows."""
    (path,) = server.data.glob("*.sqlite3")
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE_S)) as database, database:
        return database.execute(sql.replace("information_schema.tables", SQLITE_TABLES)).fetchall()


SQLITE_TABLES = (
    "(SELECT name AS table_name, 'public' AS table_schema FROM sqlite_master WHERE type = 'table')"
)


def mentions(ask: Callable[[str], list[Any]], traces: list[str]) -> set[str]:
    """Return the tables with a row that has one of some texts: each table is read whole."""
    listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    return {
        table
        for (table,) in ask(listed)
        if any(trace in repr(ask(f'SELECT * FROM "{table}"')) for trace in traces)
    }


def test_a_failed_suite_says_what_failed(server: Server, tmp_path: Path) -> None:
    """With its exit code; so does a command that is not there."""
    deploy(server, tmp_path / "bad", "ErrorInBranch", "--branch", "bad")
    (tmp_path / "bad-meeting").mkdir()
    (tmp_path / "bad-meeting" / "other").touch()
    suite = [sys.executable, "-c", SUITE, "word", str(tmp_path / "bad-meeting")]
    printed = run(server, "branch", "run", "bad", "--tests", "--", *suite, code=1)
    assert "FAILED arn:aws:states:us-east-1:" in printed
    assert "ErrorInBranch: as meant" in printed
    leave = [sys.executable, "-c", "import sys; sys.exit(7)"]
    quiet = run(server, "branch", "run", "bad", "--", *leave, code=7)
    assert quiet == ""
    assert "No such file" in run(server, "branch", "run", "bad", "--", "no-such", code=127)
    missing = run(server, "branch", "run", "other", "--", "true", code=2)
    assert "has no branch 'other'" in missing
    assert "is being deleted" in run(server, "branch", "delete", "bad")
    wait_until(lambda: "bad " not in run(server, "branch", "list"))
    dry = run(server, "deploy", str(tmp_path / "bad"), "--branch", "bad", "--dry-run")
    assert "would create branch bad" in dry
    assert "bad " not in run(server, "branch", "list")


def test_more_files_take_no_more_calls(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """To create, to change and to leave them: the calls of two state machines do for forty."""
    calls: list[str] = []
    send = HTTPConnectionPool.urlopen

    def count(pool: Any, method: str, url: str, *rest: Any, **more: Any) -> Any:
        calls.append(url)
        return send(pool, method, url, *rest, **more)

    monkeypatch.setattr(HTTPConnectionPool, "urlopen", count)

    def calls_of(files: int, result: str) -> int:
        folder = tmp_path / str(files)
        folder.mkdir(exist_ok=True)
        for number in range(files):
            (folder / f"m{number}.asl.json").write_text(definition(result))
        calls.clear()
        words = ["deploy", str(folder), "--data", str(server.data), "--branch", f"files-{files}"]
        with pytest.raises(SystemExit) as end:
            command_line.main(words)
        assert end.value.code == 0
        return len(calls)

    for result, change in (("a", "created"), ("b", "updated"), ("b", "unchanged")):
        few, printed = calls_of(2, result), capsys.readouterr().out
        assert printed.count(change) == 2
        assert calls_of(40, result) == few <= 3
        assert capsys.readouterr().out.count(change) == 40


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_an_end_by_a_signal_leaves_nothing_half(
    server: Server, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """All that the command has started ends, too, and the branch serves the next run as before."""
    deploy(server, tmp_path / "main", "main", "--branch", "signals")
    ready = tmp_path / "ready"
    lines = f'{sys.executable} -c "{sleeping(ready)}"; true'  # the shell waits for Python
    process = begin(server, "branch", "run", "signals", "--", "bash", "-c", lines)
    wait_until(lambda: ready.exists() and ready.read_text())
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    wait_until(lambda: not is_running(int(ready.read_text())))
    show = [sys.executable, "-c", "import os; print(os.environ['AWS_ACCESS_KEY_ID'])"]
    first, second = (run(server, "branch", "run", "signals", "--", *show) for _ in range(2))
    assert first == second


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of such an end")
def test_a_killed_run_ends_its_command(server: Server, tmp_path: Path) -> None:
    """By kill -9, which no process can catch."""
    deploy(server, tmp_path / "main", "main", "--branch", "killed")
    ready = tmp_path / "ready"
    command = [sys.executable, "-c", sleeping(ready)]
    process = begin(server, "branch", "run", "killed", "--", *command)
    wait_until(lambda: ready.exists() and ready.read_text())
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not is_running(int(ready.read_text())))


def sleeping(ready: Path) -> str:
    """Return a program that writes its process id into a file and sleeps."""
    return f"import os, time; open('{ready}', 'w').write(str(os.getpid())); time.sleep(600)"


def is_running(number: int) -> bool:
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    try:
        stat = pathlib.Path(f"/proc/{number}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
