"""What a run of the tests leaves behind when it is ended by force."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import run_folder
from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent
_FAILING = """
import select, signal, subprocess, sys, tempfile, pathlib
from tests import run_folder

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

root = run_folder.begin()

def test_fails():
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    folder = tempfile.mkdtemp()
    pathlib.Path({report!r}).write_text(f"{{root}} {{folder}}")
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        pass  # a signal that arrives just before a call that blocks for good would go unnoticed
    raise AssertionError
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the reaper finds processes by /proc")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, None])
def test_a_run_leaves_no_process_and_no_folder(tmp_path: Path, end: signal.Signals | None) -> None:
    """Neither a failing test nor a signal to pytest leaves what the test had started."""
    report = tmp_path / "report"
    file = tmp_path / "test_failing.py"
    file.write_text(_FAILING.format(report=str(report)), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    del environment[run_folder.VARIABLE]
    options = ("-p", "no:django", "-p", "no:xdist", "-s")
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *options, "--rootdir", tmp_path, file],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with run:
        wait_until(lambda: report.exists() and bool(report.read_text()))
        root, folder = report.read_text().split()
        # a process that has just begun its program shows no environment for a moment
        wait_until(lambda: any("sleep" in line for line in run_folder.processes(root).values()))
        assert Path(folder).is_relative_to(root)
        if end is None:
            run.communicate(b"\n")
        else:
            run.send_signal(end)
        assert run.wait(60) != 0
    wait_until(lambda: not run_folder.processes(root) and not Path(root).exists())


def test_processes_of_a_run_write_bytecode() -> None:
    """A process and its children do so, also if the shell has ``PYTHONDONTWRITEBYTECODE``."""
    code = (
        "import os, sys; from tests import run_folder; run_folder.begin();"
        "print(sys.dont_write_bytecode, 'PYTHONDONTWRITEBYTECODE' in os.environ)"
    )
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code]
    printed = subprocess.check_output(command, cwd=ROOT, env=environment, text=True)
    assert printed.split() == ["False", "False"]
