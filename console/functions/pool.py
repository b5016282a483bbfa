"""Pool of function processes: make calls, kill late ones, end idle processes.

Theory of operation. A process belongs to one function and serves one call at a time, as in Lambda.
``lending`` assigns processes to calls and decides when to start another one. The calling thread
writes to the process and reads the answer itself, without a switch of threads.

A watch thread kills a process whose call exceeds its limit; the caller then reads the end of the
pipe. It also ends processes that have been idle for a while.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from django.conf import settings

from console.functions import lambda_runtime
from console.functions.lending import ProcessLender
from console.functions.process import (
    CallAnswer,
    FunctionKey,
    FunctionProcess,
    ProcessEndedError,
    StartError,
    clean_environment,
)
from console.functions.process_output import can_poll
from console.functions.runner import DEFAULT_MEMORY_MB, InvocationError

log = structlog.get_logger(__name__)
TIMED_OUT = "Sandbox.Timedout"
_IDLE_S = 300.0
_DEFAULT = 16
_INIT_S = 60.0
"""The time limit of an import; as in Lambda, it does not count as part of the call."""


@dataclass(frozen=True, slots=True)
class ProcessCall:
    """A call to make. ``limit_s``: the function's timeout; ``kill_s``: when it is killed."""

    key: FunctionKey
    arn: str
    idempotency_key: str
    event: str
    limit_s: float
    kill_s: float


@dataclass(slots=True)
class CallRecord:
    """The output of a call, and the figures of Lambda's REPORT line.

    ``init_ms``: the duration of the import, None if the process existed; ``memory_mb``: the most
    that the process has had, 0 if that is not known.
    """

    function: str = ""
    request: str = ""
    started_ms: int = 0
    memory_limit_mb: int = 0
    duration_ms: float = 0.0
    init_ms: float | None = None
    memory_mb: int = 0
    output: str = ""
    error: str = ""


@dataclass(slots=True)
class FunctionResult:
    """The end of a call: ``text`` is its result, or the report of its ``error``."""

    text: str
    error: str
    record: CallRecord = field(repr=False)


class ProcessPool:
    """The function processes of a server process; the first call starts the first one."""

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()  # guards all below, and the lender
        self._lender = ProcessLender(limit, self._lock)
        self._busy: set[FunctionProcess] = set()
        self._watching = threading.Condition(self._lock)
        self._look_at: float | None = None  # when the watch thread wakes; None: no thread
        # all processes end when this pipe closes, also if the server is killed
        self._life = os.pipe() if can_poll() else None

    def call(self, call: ProcessCall) -> FunctionResult:
        """Make a call in a process of its function; return its result or error."""
        process = self._take(call)
        record = CallRecord(
            function=call.key.name,
            memory_limit_mb=call.key.options.memory_mb or int(DEFAULT_MEMORY_MB),
            request=str(uuid.uuid4()),
            started_ms=int(time.time() * 1000),
        )
        try:
            answer = self._answer(process or self._start(call, record), call, record)
        except StartError as error:
            failure = InvocationError(error.name, _said(record, str(error)), record.request)
            answer = CallAnswer(failure.cause, failure.name)
        record.memory_mb, record.error = max(record.memory_mb, answer.memory_mb), answer.error
        record.duration_ms = answer.ms
        return FunctionResult(answer.text, answer.error, record)

    def end_idle(self) -> None:
        """End the idle processes.

        Busy processes end together with the server. If they were killed here, their callers would
        record that as the outcome of the call, and the next start of the server would not repeat
        the call.
        """
        with self._lock:
            idle = list(self._lender.idle())
            for process in idle:
                self._lender.remove(process)
        for process in idle:
            process.close()

    def close(self) -> None:
        """End all processes, even during calls."""
        self.end_idle()
        with self._lock:
            for process in self._busy:
                process.kill()  # its caller finds the end of the pipe
            pipes, self._life = self._life or (), None
        for pipe in pipes:
            os.close(pipe)

    @property
    def pids(self) -> list[int]:
        """The ids of all processes, idle or busy."""
        with self._lock:
            return [process.pid for process in (*self._lender.idle(), *self._busy)]

    # -- one call ----------------------------------------------------------------------------------

    def _start(self, call: ProcessCall, record: CallRecord) -> FunctionProcess:
        """Start a process (the lender has counted it); raise StartError."""
        environment = _environment(call.key, record.memory_limit_mb)
        try:
            return FunctionProcess(call.key, environment, self._life and self._life[0])
        except StartError:
            with self._lock:
                self._lender.started()
                self._lender.forget(call.key)
            self._end_surplus()
            raise

    def _answer(
        self, process: FunctionProcess, call: ProcessCall, record: CallRecord
    ) -> CallAnswer:
        good = False
        begun = time.monotonic()
        try:
            if process.init_ms is None:
                ready = self._set_up(process, record)
                if ready.error:
                    return ready
                begun = time.monotonic()
                self._watch(process, begun + call.kill_s)
            answer = process.call(
                record.request,
                call.arn,
                call.idempotency_key,
                lambda_runtime.deadline_ms(call.limit_s),
                _trace(),
                call.event,
            )
            good = True
        except ProcessEndedError as ended:
            answer = _ended_answer(process, ended, call, record)
            answer.ms = (time.monotonic() - begun) * 1000
        finally:
            record.output += process.output.take()
            self._give_back(process, good=good)
        return answer

    def _set_up(self, process: FunctionProcess, record: CallRecord) -> CallAnswer:
        context = lambda_runtime.function_fields(process.key.name, record.memory_limit_mb)
        try:
            self._watch(process, time.monotonic() + _INIT_S)
            ready = process.set_up(record.request, context)
            record.init_ms = process.init_ms
            record.output = process.output.take()
        finally:
            with self._lock:
                self._lender.started()
        return ready

    # -- lending -----------------------------------------------------------------------------------

    def _take(self, call: ProcessCall) -> FunctionProcess | None:
        """Wait for an idle process of a function, or for room to start one (None)."""
        while True:
            process = self._lender.take(call.key)
            self._end_surplus()
            if process is None:
                return None
            if process.is_usable():
                self._watch(process, time.monotonic() + call.kill_s)
                return process
            log.info("a function's process is replaced", function=call.key.name)
            self._give_back(process, good=False)

    def _give_back(self, process: FunctionProcess, *, good: bool) -> None:
        with self._lock:
            process.deadline = None
            self._busy.discard(process)
            if good:
                self._lender.give_back(process)
                self._wake_watch(time.monotonic() + _IDLE_S)
            else:
                self._lender.forget(process.key)
        if not good:
            process.close()
        self._end_surplus()

    def _end_surplus(self) -> None:
        """End the processes removed to make room."""
        if self._lender.has_surplus:
            with self._lock:
                surplus = self._lender.take_surplus()
            for process in surplus:
                process.close()

    # -- deadlines ---------------------------------------------------------------------------------

    def _watch(self, process: FunctionProcess, deadline: float) -> None:
        with self._lock:
            self._busy.add(process)
            process.deadline = deadline
            self._wake_watch(deadline)

    def _wake_watch(self, moment: float) -> None:
        """Wake the watch thread at this time at the latest."""
        if self._look_at is None:
            self._look_at = moment
            threading.Thread(target=self._watch_all, name="function-watch", daemon=True).start()
        elif moment < self._look_at:
            self._look_at = moment
            self._watching.notify_all()

    def _watch_all(self) -> None:
        while True:
            with self._lock:
                while self._look_at is not None and self._look_at > time.monotonic():
                    self._watching.wait(self._look_at - time.monotonic())
                now = time.monotonic()
                for process in self._busy:
                    if process.deadline is not None and process.deadline <= now:
                        process.timed_out, process.deadline = True, None
                        process.kill()
                unused = [each for each in self._lender.idle() if each.idle_since + _IDLE_S <= now]
                for process in unused:
                    self._lender.remove(process)
                dues = [each.deadline for each in self._busy if each.deadline is not None]
                dues += [each.idle_since + _IDLE_S for each in self._lender.idle()]
                self._look_at = min(dues, default=None)
                ended = self._look_at is None
            for process in unused:
                process.close()
            if ended:
                return


def _ended_answer(
    process: FunctionProcess, ended: ProcessEndedError, call: ProcessCall, record: CallRecord
) -> CallAnswer:
    """Return the result of a call whose process ended."""
    if process.timed_out:
        limit = _INIT_S if process.init_ms is None else call.limit_s
        message = _said(record, f"Task timed out after {limit:.2f} seconds")
        failure = InvocationError(TIMED_OUT, message, record.request)
    else:
        failure = lambda_runtime.exit_error(ended.code, record.request)
    return CallAnswer(failure.cause, failure.name)


def _said(record: CallRecord, message: str) -> str:
    return f"RequestId: {record.request} Error: {message}"


def _environment(key: FunctionKey, memory_mb: int) -> dict[str, str]:
    """Return the environment variables of a function: the server's, Lambda's, its entry's."""
    variables = clean_environment(key.options)
    region = settings.STATEYARD_REGION
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        variables.setdefault(name, region)
    variables |= {
        "AWS_LAMBDA_FUNCTION_NAME": key.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory_mb),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{key.name}",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "LAMBDA_TASK_ROOT": key.options.folder or str(Path.cwd()),
        "_HANDLER": key.target.replace(":", "."),
    }
    if key.options.memory_mb:
        # each thread's arena reserves 64 MB of the address space that is limited
        variables["MALLOC_ARENA_MAX"] = "1"
    return variables | dict(key.options.environment)


def _trace() -> str:
    """Return the X-Ray trace header of a call: not sampled, because nothing is sent to X-Ray."""
    random = os.urandom(20).hex()
    return f"Root=1-{int(time.time()):08x}-{random[:24]};Parent={random[24:]};Sampled=0"


class _CurrentPool:
    """The pool of this process, created at the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None

    def get(self) -> ProcessPool:
        """Return the pool."""
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPool(settings.STATEYARD_FUNCTION_PROCESSES or _DEFAULT)
                atexit.unregister(self.end_idle)
                atexit.register(self.end_idle)
            return self._pool

    def end_idle(self) -> None:
        """End the idle processes."""
        if self._pool is not None:
            self._pool.end_idle()

    def close(self) -> None:
        """End all its processes; the next call makes another pool."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


_current = _CurrentPool()


def call_in_process(call: ProcessCall) -> FunctionResult:
    """Make a call in a process of its function."""
    return _current.get().call(call)
