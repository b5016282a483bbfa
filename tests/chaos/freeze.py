"""Draw workflows that Graphviz cannot lay out, while other users' requests stay fast."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from botocore.exceptions import BotoCoreError, ClientError

from tests.chaos.database import wait_until
from tests.chaos.load import Report
from tests.chaos.shapes import SHAPES
from tests.chaos.stage import begin, close
from tests.chaos.team_server import machine_arn
from tests.console.web.graph.workflows import choices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.chaos.stage import Size
    from tests.chaos.team_server import TeamServer
    from tests.postgres import Postgres

ENOUGH = 20
"""Posts of which a percentile says something; with fewer, times are told and not judged."""
_P99_MS, _ANSWER_S, _IDLE_S = 250.0, 3.0, 10.0
_SESSION = """
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore
user = get_user_model().objects.get(username="editor")
session = SessionStore()
session[SESSION_KEY] = str(user.pk)
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.create()
print(session.session_key)
"""


def freeze(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Let an editor post 40 Choice states with 1,600 ways, the same text and changed ones.

    Meanwhile another client calls /healthz and StartExecution.
    """
    report = Report("freeze", size.seed, n=2 * size.n)
    yard = begin(folder, server, size)
    try:
        assert yard.web is not None
        pid = yard.web.pid
        with _others(yard, report) as times, _editor(yard) as editor:
            same = [_post(editor, report, "") for _ in range(size.n)]
            changed = [_post(editor, report, f"version {turn}") for turn in range(size.n)]
            if not wait_until(lambda: not _busy(pid), _IDLE_S):
                report.violations.append(f"a layout is at work {_IDLE_S:.0f} s after the last post")
        report.facts |= {"first_s": round(same[0], 2), "same_max_s": round(max(same), 2)}
        report.facts["changed_max_s"] = round(max(changed), 2)
        _judge(report, times, [*same, *changed], judged=size.n >= ENOUGH)
        children = _children(pid)
    except BaseException:
        yard.stop()
        raise
    close(yard, None, report)
    if not wait_until(lambda: not any(_runs(child) for child in children), _IDLE_S):
        report.violations.append("a layout process outlives the server")
    return report


def _judge(
    report: Report, times: dict[str, list[float]], answers: list[float], *, judged: bool
) -> None:
    for name, durations in times.items():
        p99_ms = sorted(durations)[int(len(durations) * 0.99)] * 1000
        report.facts |= {name: len(durations), f"{name}_p99_ms": round(p99_ms, 1)}
        report.facts[f"{name}_max_ms"] = round(max(durations) * 1000, 1)
        if judged and p99_ms >= _P99_MS:
            report.violations.append(f"{name}: p99 is {p99_ms:.0f} ms, wanted below {_P99_MS:.0f}")
    late = [seconds for seconds in answers if seconds >= _ANSWER_S]
    if judged and late:
        report.violations.append(f"{len(late)} posts took {max(late):.1f} s and less")


# -- the editor ------------------------------------------------------------------------------------


def _editor(yard: TeamServer) -> httpx.Client:
    """Return a client that is signed in as an editor's browser is."""
    yard.manage("member", "editor", "--role", "editor")
    session = yard.manage("shell", "--no-imports", "-c", _SESSION).split()[-1]
    token = secrets.token_hex(16)
    return httpx.Client(
        base_url=f"http://127.0.0.1:{yard.port}",
        cookies={"stateyard_session": session, "stateyard_csrf": token},
        headers={"X-CSRFToken": token},
        timeout=120,
    )


def _post(editor: httpx.Client, report: Report, mark: str) -> float:
    """Post a definition to the editor's check; return how long it took, seconds."""
    begun = time.monotonic()
    answer = editor.post("/machines/new/_check", data={"text": choices(40, 40, mark)})
    spent = time.monotonic() - begun
    if answer.status_code != 200 or "drawn in plain layers" not in answer.text:
        report.violations.append(f"the check answered {answer.status_code}, without a graph")
    return spent


# -- the others ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _others(yard: TeamServer, report: Report) -> Iterator[dict[str, list[float]]]:
    """Call beside what follows; yield how long each call took, by its name, seconds."""
    times: dict[str, list[float]] = {"healthz": [], "start": []}
    web, api = httpx.Client(base_url=f"http://127.0.0.1:{yard.port}", timeout=120), yard.client()
    arn, text = machine_arn(SHAPES[0].name), json.dumps({"n": 1})
    calls: dict[str, Callable[[], Any]] = {
        "healthz": lambda: web.get("/healthz").raise_for_status(),
        "start": lambda: api.start_execution(stateMachineArn=arn, input=text),
    }
    ended = threading.Event()
    threads = [
        threading.Thread(target=_repeat, args=(calls[name], times[name], report, ended))
        for name in times
    ]
    with web, contextlib.closing(api):
        for thread in threads:
            thread.start()
        try:
            yield times
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def _repeat(
    call: Callable[[], Any], times: list[float], report: Report, ended: threading.Event
) -> None:
    """Call again and again, with short pauses, and note how long each took."""
    while not ended.wait(0.02):
        begun = time.monotonic()
        try:
            call()
        except (httpx.HTTPError, BotoCoreError, ClientError) as error:
            report.violations.append(str(error))
        times.append(time.monotonic() - begun)


# -- the children ----------------------------------------------------------------------------------


def _children(pid: int) -> list[int]:
    """Return the layout processes of a server."""
    pids = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"layout_child" in (path / "cmdline").read_bytes():
                pids.append(int(path.name))
    return pids


def _busy(pid: int) -> bool:
    """Return whether a layout process of a server spends processor time."""
    before = {child: _ticks(child) for child in _children(pid)}
    time.sleep(0.3)
    return any(_ticks(child) > ticks for child, ticks in before.items())


def _ticks(pid: int) -> int:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
