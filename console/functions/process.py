"""One process that runs one function, as the server sees it: start it, call it, kill it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from console.functions import runner
from console.functions.output import MOST_OUTPUT, BoundedOutput
from console.functions_file import file_stamp

if TYPE_CHECKING:
    from console.functions.options import FunctionOptions

BAD_INTERPRETER = "Runtime.InvalidEntrypoint"
BAD_FOLDER = "Runtime.InvalidWorkingDir"
_MARK_S = 1.0
"""A function may have closed its output, and then no mark comes."""
_LOOK_S = 0.2
"""Source files are looked at no more often than this."""
_RUNNER = str(Path(runner.__file__).resolve())
_NOT_PASSED = ("STEPYARD_", "DJANGO_")
"""How variables begin that are the server's: no function gets its secrets."""
_OF_INTERPRETER = ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV")


class ProcessEndedError(Exception):
    """The process is gone. ``code``: of its exit, below 0 for a signal."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code


class StartError(Exception):
    """The process cannot be started. ``name``: of the error, as Lambda has it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class FunctionKey:
    """What has processes of its own: a function, with all that was said of it."""

    name: str
    target: str
    options: FunctionOptions
    last_folders: tuple[str, ...]


@dataclass(slots=True)
class CallAnswer:
    """What came of a call. ``text``: the result, or the report of the ``error``."""

    text: str
    error: str
    ms: float = 0.0
    memory_mb: int = 0


class OutputCollector:
    """Reads what a process prints, call by call; it closes the pipe at its end."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._change = threading.Condition()
        self._mark = b""
        self._marked = False
        self._ended = False
        self._output = BoundedOutput()
        self._rest = b""  # of what was read last: it may be the beginning of the mark
        threading.Thread(target=self._read, name="function-output", daemon=True).start()

    def expect(self, request: str) -> None:
        """Begin a call: its mark is what ends its output."""
        with self._change:
            self._mark, self._marked = runner.MARK.format(request).encode(), False

    def give_up(self) -> None:
        """Wait for no mark: the function has closed its output."""
        with self._change:
            self._marked = True

    def take(self) -> str:
        """Return the output of the call, after its mark or the end of the process."""
        with self._change:
            self._change.wait_for(lambda: self._marked or self._ended, _MARK_S)
            if not self._marked:
                self._output.add(self._rest)
                self._rest = b""
            text = self._output.take()
            rest, self._rest = self._rest, b""
            self._output.add(rest)
        return text

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._pipe.fileno(), 65536)
            except OSError:
                data = b""
            with self._change:
                if data:
                    self._add(data)
                    continue
                self._ended = True
                self._change.notify_all()
            self._pipe.close()
            return

    def _add(self, data: bytes) -> None:
        data = self._rest + data
        if self._mark and not self._marked:
            before, mark, after = data.partition(self._mark)
            if mark:
                self._output.add(before)
                self._rest, self._marked = after, True
                self._change.notify_all()
                return
            keep = len(data) - len(self._mark) + 1
            self._output.add(data[: max(keep, 0)])
            self._rest = data[max(keep, 0) :]
            return
        self._rest = data[-MOST_OUTPUT:]


class FunctionProcess:
    """A running process; one caller at a time uses it.

    ``deadline``: when the call under way has to be over, by the monotonic clock; None without one.
    """

    def __init__(self, key: FunctionKey, environment: dict[str, str]) -> None:
        """Start it; raise StartError."""
        self.key = key
        self.deadline: float | None = None
        self.timed_out = False
        self.idle_since = 0.0
        self.init_ms: float | None = None
        self._files: dict[str, tuple[str, tuple[int, int, int]]] = {}
        self._looked = time.monotonic()
        self._process = _start(key, environment)
        assert self._process.stdin  # noqa: S101 - for the type checker, as the next two
        assert self._process.stdout  # noqa: S101
        assert self._process.stderr  # noqa: S101
        self._requests = self._process.stdin.fileno()
        self._answers = cast("BinaryIO", self._process.stdout)
        self.output = OutputCollector(self._process.stderr)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def set_up(self, request: str) -> CallAnswer:
        """Import the function, and return the error of that, if any; raise ProcessEndedError."""
        options = self.key.options
        setup = {
            "request": request,
            "target": self.key.target,
            "first": [options.folder] if options.folder else [],
            "last": list(self.key.last_folders),
            "memory_mb": options.memory_mb,
        }
        header, _ = self._exchange(setup, b"", request)
        self.init_ms = header["init_ms"]
        if "error" not in header:
            return CallAnswer("", "", 0.0, header["memory_mb"])
        error = runner.InvocationError(header["error"], header["message"], request, header["stack"])
        return CallAnswer(error.cause, error.name, 0.0, header["memory_mb"])

    def call(self, context: dict[str, object], trace: str, event: str) -> CallAnswer:
        """Call the function and return what came of it; raise ProcessEndedError."""
        request = str(context["aws_request_id"])
        header, text = self._exchange({"context": context, "trace": trace}, event.encode(), request)
        return CallAnswer(
            text.decode("utf-8", "replace"),
            header.get("error", ""),
            header["ms"],
            header["memory_mb"],
        )

    def _exchange(
        self, header: dict[str, Any], text: bytes, request: str
    ) -> tuple[dict[str, Any], bytes]:
        self.output.expect(request)
        try:
            runner.write_frame(self._requests, header, text)
            header, answer = runner.read_frame(self._answers)
        except (OSError, EOFError, ValueError):
            self.kill()  # it may have closed its pipe alone
            raise ProcessEndedError(self._process.wait()) from None
        if header.get("closed"):
            self.output.give_up()
        for path, cached, *stamp in header.get("files", ()):
            self._files[path] = cached, (stamp[0], stamp[1], stamp[2])
        return header, answer

    # -- its end -----------------------------------------------------------------------------------

    def is_usable(self) -> bool:
        """Tell whether it lives and has the source files as they are now."""
        if self._process.poll() is not None:
            return False
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return True
        self._looked = now
        changed = [
            path for path, (_, stamp) in self._files.items() if file_stamp(Path(path)) != stamp
        ]
        for path in changed:
            # Python takes the compiled file for good if the source has the second and the size of
            # before: two edits within a second would be one.
            with contextlib.suppress(OSError):
                Path(self._files[path][0]).unlink(missing_ok=True)
        return not changed

    def kill(self) -> None:
        """End it and what it has started, whatever they do."""
        if self._process.poll() is None:
            # a process of its own session is the first of its group
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    def close(self) -> None:
        """End it and free its pipes, but the one that the collector reads."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def find_interpreter(options: FunctionOptions) -> str:
    """Return the interpreter of a function; raise StartError if it or the folder is not there."""
    python = options.python or sys.executable
    found = shutil.which(python)
    if found is None:
        raise StartError(BAD_INTERPRETER, f"exec: {python}: no such file, or not executable")
    if options.folder and not Path(options.folder).is_dir():
        raise StartError(BAD_FOLDER, f"chdir: {options.folder}: no such folder")
    return found


def clean_environment(options: FunctionOptions) -> dict[str, str]:
    """Return the server's variables without those that are its own."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_NOT_PASSED)}
    if options.python:
        kept = {name: text for name, text in kept.items() if name not in _OF_INTERPRETER}
    return kept


def _start(key: FunctionKey, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    python = find_interpreter(key.options)
    try:
        return subprocess.Popen(  # noqa: S603 - the operator's interpreter, our own file
            [python, _RUNNER],
            env=environment,
            cwd=key.options.folder or None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a key pressed in the server's terminal is not for it
            bufsize=-1,
        )
    except OSError as error:
        raise StartError(BAD_INTERPRETER, f"exec: {python}: {error.strerror}") from error
