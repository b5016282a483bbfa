"""A child process of one function: start it, call the function, kill it."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from console.config.functions_file import file_stamp
from console.functions import runner
from console.functions.cpu_affinity import let_use_all
from console.functions.process_output import open_output

if TYPE_CHECKING:
    from console.config.function_options import FunctionOptions

BAD_INTERPRETER = "Runtime.InvalidEntrypoint"
BAD_FOLDER = "Runtime.InvalidWorkingDir"
_READ_BYTES = 65536
_LOOK_S = 0.2
"""Seconds between two checks of whether source files have changed."""
_RUNNER = str(Path(runner.__file__).resolve())
_NOT_PASSED = ("STATEYARD_", "STEPYARD_", "DJANGO_")
"""Prefixes of the server's own variables: no function gets its secrets."""
_MOST_HEADER = 16 * 1024 * 1024
_MOST_MEMORY_MB = 2**31 - 1
_OF_INTERPRETER = ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV")


class _AnswerHeader(msgspec.Struct):
    """Header of an answer. ``files``: source, compiled file, stamp of the source.

    ``error``, ``message``, ``stack``: of what failed; ``closed``: the output has no end mark.
    """

    error: str = ""
    message: str = ""
    stack: list[str] = []
    files: list[tuple[str, str, int, int, int]] = []
    closed: bool = False


class ProcessEndedError(Exception):
    """The process has ended. ``code``: its exit code, below 0 for a signal."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code


class StartError(Exception):
    """The process cannot be started. ``name``: Lambda's name of the error."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class FunctionKey:
    """Key of a set of processes: a function with all its options."""

    name: str
    target: str
    options: FunctionOptions
    last_folders: tuple[str, ...]


@dataclass(slots=True)
class CallAnswer:
    """The answer to a call. ``text``: the result, or the report of the ``error``."""

    text: str
    error: str
    ms: float = 0.0
    memory_mb: int = 0


class FunctionProcess:
    """A running process, used by one caller at a time.

    ``deadline``: when the call under way has to be over, by the monotonic clock; None without one.
    """

    def __init__(
        self, key: FunctionKey, environment: dict[str, str], life: int | None = None
    ) -> None:
        """Start the process; raise StartError. ``life``: a pipe whose end stops it, or None."""
        self.key = key
        self.deadline: float | None = None
        self.timed_out = False
        self.idle_since = 0.0
        self.init_ms: float | None = None
        self._files: dict[str, tuple[str, tuple[int, int, int]]] = {}
        self._looked = time.monotonic()
        self._process = _start(key, environment, life)
        assert self._process.stdin  # noqa: S101 - for the type checker, as the next two
        assert self._process.stdout  # noqa: S101
        assert self._process.stderr  # noqa: S101
        self._requests = self._process.stdin.fileno()
        self._answers = self._process.stdout.fileno()
        self.output = open_output(self._process.stderr, self._answers)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def set_up(self, request: str, context: tuple[str, ...]) -> CallAnswer:
        """Import the function; return the import error, if any; raise ProcessEndedError.

        ``context``: what the contexts of all its calls have in common.
        """
        options = self.key.options
        setup = {
            "request": request,
            "target": self.key.target,
            "first": [options.folder] if options.folder else [],
            "last": list(self.key.last_folders),
            "memory_mb": options.memory_mb,
            "context": context,
            "mark": self.output.mark,
        }
        answer, header = self._exchange(request, msgspec.json.encode(setup), b"")
        self.init_ms = answer.ms
        if answer.error:
            failure = header.error, header.message, request, header.stack
            answer.text = runner.InvocationError(*failure).cause
        return answer

    def call(
        self, request: str, arn: str, key: str, deadline_ms: int, trace: str, event: str
    ) -> CallAnswer:
        """Call the function and return the answer; raise ProcessEndedError."""
        header = msgspec.json.encode((request, arn, key, deadline_ms, trace))
        return self._exchange(request, header, event.encode())[0]

    def _exchange(
        self, request: str, header: bytes, text: bytes
    ) -> tuple[CallAnswer, _AnswerHeader]:
        """Send a request and return the answer, with its header."""
        self.output.expect(request)
        lengths = runner.REQUEST_HEAD.pack(len(header), len(text))
        try:
            runner.write_all(self._requests, lengths + header + text)
            self.output.wait_for_answer()
            answer, report = self._read_answer(request)
        except (OSError, EOFError, ValueError, msgspec.MsgspecError):
            self.kill()  # it may have closed its pipe alone, or written into it
            raise ProcessEndedError(self._process.wait()) from None
        if report.closed:
            self.output.give_up()
        for path, cached, *stamp in report.files:
            self._files[path] = cached, (stamp[0], stamp[1], stamp[2])
        return answer, report

    def _read_answer(self, request: str) -> tuple[CallAnswer, _AnswerHeader]:
        """Read one answer; raise EOFError if the pipe ends before it.

        Raise ``ValueError`` or msgspec's error for anything but the answer to this request: a
        function can find the pipe and write what it likes, and an answer to an earlier request
        must not become the result of this one.
        """
        data = _read(self._answers)
        while len(data) < runner.ANSWER_HEAD.size:
            data += _read(self._answers)
        answered, head, length, ms, memory_mb = runner.ANSWER_HEAD.unpack_from(data)
        begin = runner.ANSWER_HEAD.size + head
        if answered != request.encode() or head > _MOST_HEADER or length > runner.MAX_RESPONSE:
            raise ValueError(answered)
        if not 0 <= ms < math.inf or memory_mb > _MOST_MEMORY_MB:
            raise ValueError(ms)
        if len(data) < begin + length:
            chunks, missing = [data], begin + length - len(data)
            while missing > 0:
                chunks.append(_read(self._answers))
                missing -= len(chunks[-1])
            data = b"".join(chunks)
        if len(data) > begin + length:
            raise ValueError(len(data))
        text = data[begin:].decode("utf-8", "replace")
        report = _decode_header(data[begin - head : begin]) if head else _NOTHING_SAID
        return CallAnswer(text, report.error, ms, memory_mb), report

    # -- its end -----------------------------------------------------------------------------------

    def is_usable(self) -> bool:
        """Whether the process is alive and its source files are unchanged."""
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
        """Kill the process and its children."""
        if self._process.poll() is None:
            # a process of its own session is the first of its group
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    def close(self) -> None:
        """End the process and close its pipes."""
        self.kill()
        self._process.wait()
        self.output.close()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def find_interpreter(options: FunctionOptions) -> str:
    """Return the interpreter of a function; raise StartError if it or its folder is missing."""
    python = options.python or sys.executable
    interpreter = shutil.which(python)
    if interpreter is None:
        raise StartError(BAD_INTERPRETER, f"exec: {python}: no such file, or not executable")
    if options.folder and not Path(options.folder).is_dir():
        raise StartError(BAD_FOLDER, f"chdir: {options.folder}: no such folder")
    return interpreter


def clean_environment(options: FunctionOptions) -> dict[str, str]:
    """Return the environment variables without the server's own."""
    variables = {
        name: text for name, text in os.environ.items() if not name.startswith(_NOT_PASSED)
    }
    if options.python:
        variables = {name: text for name, text in variables.items() if name not in _OF_INTERPRETER}
    return variables


_decode_header = msgspec.json.Decoder(_AnswerHeader).decode
_NOTHING_SAID = _AnswerHeader()


def _read(pipe: int) -> bytes:
    data = os.read(pipe, _READ_BYTES)
    if not data:
        raise EOFError
    return data


def _start(
    key: FunctionKey, environment: dict[str, str], life: int | None
) -> subprocess.Popen[bytes]:
    python = find_interpreter(key.options)
    descriptors = () if life is None else (life,)
    try:
        process = subprocess.Popen(  # noqa: S603 - the operator's interpreter, our own file
            [python, _RUNNER, *map(str, descriptors)],
            pass_fds=descriptors,
            env=environment,
            cwd=key.options.folder or None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a key pressed in the server's terminal is not for it
            bufsize=0,
        )
    except OSError as error:
        raise StartError(BAD_INTERPRETER, f"exec: {python}: {error.strerror}") from error
    let_use_all(process.pid)
    return process
