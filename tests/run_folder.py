"""The folder of one run of the tests, and the process that clears up behind it.

A run writes below one folder in the system's temporary folder: test databases, data folders of
servers, pytest's own ``tmp_path``. The variable ``STATEYARD_TEST_FOLDER`` names it, and each
process that a test starts inherits it. So two things are known of whatever a run leaves behind:
its files lie below the folder, and its processes have the folder in their environment.

The reaper is a process of its own that waits until the run has ended, by whatever: its last test,
Ctrl-C, SIGTERM, ``kill -9``. Then it ends the processes of the run that do not end by themselves,
says so, and deletes the folder::

    1. pytest starts the reaper, with a pipe to its standard input
    2. a test starts PostgreSQL
    3. somebody kills pytest; no fixture and no ``atexit`` runs
    4. the kernel closes the pipe, the reaper reads its end, and ends PostgreSQL

Linux tells the environment of a process in ``/proc``; elsewhere only the folder is deleted.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VARIABLE = "STATEYARD_TEST_FOLDER"
_GRACE_S = 2.0
"""Seconds that processes have to end by themselves, and again after SIGTERM."""

_reaper: subprocess.Popen[bytes] | None = None


def begin() -> Path:
    """Return the folder of this run. The first process of a run makes it and starts the reaper."""
    global _reaper  # noqa: PLW0603 - one reaper a process
    _write_bytecode()
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    folder = Path(tempfile.mkdtemp(prefix="stateyard-tests-"))
    folder.chmod(0o755)  # the system user of PostgreSQL has its data below
    command = [sys.executable, "-E", "-S", __file__, str(folder)]
    reading, _ = os.pipe()  # the other end is open for as long as this process lives
    _reaper = subprocess.Popen(command, stdin=reading, start_new_session=True)
    os.close(reading)
    atexit.register(_leave_reaper)
    os.environ[VARIABLE] = os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # it is read from TMPDIR again
    return folder


def _write_bytecode() -> None:
    """Write the bytecode of imported modules, also if ``PYTHONDONTWRITEBYTECODE`` is set.

    A run starts hundreds of processes: each would compile 800 modules, which takes three seconds.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def _leave_reaper() -> None:
    """Let the reaper outlive this process: Popen warns of a child that nobody waits for."""
    if _reaper is not None:
        _reaper.returncode = 0


def processes(folder: str) -> dict[int, str]:
    """Return the processes of a run but this one: number -> command line."""
    mark = f"{VARIABLE}={folder}".encode()
    commands = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            marked = mark in (place / "environ").read_bytes().split(b"\0")
            if marked and int(place.name) != os.getpid():
                line = (place / "cmdline").read_bytes().replace(b"\0", b" ")
                commands[int(place.name)] = line.decode(errors="replace").strip()
    return commands


def _signal(pids: dict[int, str], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)  # a test may have stopped it
            os.kill(pid, number)


def _wait(folder: str) -> dict[int, str]:
    """Return the processes that have not ended after a while."""
    deadline = time.monotonic() + _GRACE_S
    while (running := processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return running


def reap(folder: str) -> dict[int, str]:
    """End the processes of a run and delete its folder; return those that had to be ended."""
    running = _wait(folder)
    _signal(running, signal.SIGTERM)
    _wait(folder)
    while rest := processes(folder):
        _signal(rest, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)
    return running


def main() -> None:
    """Wait for the end of standard input, and clear up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for pid, line in reap(sys.argv[1]).items():
        sys.stderr.write(f"the tests left a process behind, which is ended: {pid} {line[:200]}\n")


if __name__ == "__main__":
    main()
