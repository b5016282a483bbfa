"""Keep the processes of functions: lend them to calls, kill what is late, end what is idle.

Theory of operation. A process belongs to one function and serves one call at a time, as in Lambda.
A call takes an idle process of its function, the one that was used last. If there is none, it
starts one. Only some are started at once, so a burst of short calls shares the first processes
rather than starting one for each call. At the limit, the process that has been idle longest makes
room for another function.

A thread watches deadlines. It kills a process whose call is late, and the caller, which reads the
answer, finds the end of the pipe. It also ends processes that nobody has used for a while.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

from console import lambda_runtime
from console.functions.process import (
    CallAnswer,
    FunctionKey,
    FunctionProcess,
    ProcessEndedError,
    StartError,
    clean_environment,
)
from console.functions.runner import DEFAULT_MEMORY_MB, InvocationError

if TYPE_CHECKING:
    from collections.abc import Iterator

log = structlog.get_logger(__name__)
TIMED_OUT = "Sandbox.Timedout"
_IDLE_S = 300.0
_DEFAULT = 16
_INIT_S = 60.0
"""An import may take so long; Lambda does not count it to the time of the call, either."""
_STARTING = max(2, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class ProcessCall:
    """A call to make. ``limit_s``: what the function may take; ``kill_s``: when it is killed."""

    key: FunctionKey
    arn: str
    idempotency_key: str
    event: str
    limit_s: float
    kill_s: float


@dataclass(slots=True)
class CallRecord:
    """What a call has printed, and the figures of Lambda's REPORT line.

    ``init_ms``: what the import took, None if the process was there; ``memory_mb``: the most that
    the process has had, 0 if that is not known.
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
    """The processes of functions of one server process. None runs before the first call."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._change = threading.Condition()  # guards all below
        self._idle: dict[FunctionKey, list[FunctionProcess]] = {}
        self._busy: set[FunctionProcess] = set()
        self._count = 0  # with those that are being started
        self._starting = 0
        self._look_at: float | None = None  # when the watching thread wakes; None: there is none

    def call(self, call: ProcessCall) -> FunctionResult:
        """Make a call in a process of its function, and return whatever comes of it."""
        worker = self._take(call.key)
        record = CallRecord(
            function=call.key.name,
            memory_limit_mb=call.key.options.memory_mb or int(DEFAULT_MEMORY_MB),
            request=str(uuid.uuid4()),
            started_ms=int(time.time() * 1000),
        )
        try:
            if worker is None:
                worker = self._start(call, record)
            answer = self._answer(worker, call, record)
        except StartError as error:
            failure = InvocationError(error.name, _said(record, str(error)), record.request)
            answer = CallAnswer(failure.cause, failure.name)
        record.memory_mb, record.error = max(record.memory_mb, answer.memory_mb), answer.error
        record.duration_ms = answer.ms
        return FunctionResult(answer.text, answer.error, record)

    def close(self) -> None:
        """End all processes, also those with calls under way."""
        with self._change:
            idle = list(self._all_idle())
            for worker in idle:
                self._remove(worker)
            for worker in self._busy:
                worker.kill()  # its caller finds the end of the pipe
        for worker in idle:
            worker.close()

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes, the idle ones and the others."""
        with self._change:
            return [worker.pid for worker in (*self._all_idle(), *self._busy)]

    # -- one call ----------------------------------------------------------------------------------

    def _start(self, call: ProcessCall, record: CallRecord) -> FunctionProcess:
        """Start a process that ``_take`` has counted; raise StartError."""
        try:
            worker = FunctionProcess(call.key, _environment(call.key, record.memory_limit_mb))
        except StartError:
            with self._change:
                self._count -= 1
                self._starting -= 1
                self._change.notify_all()
            raise
        return worker

    def _answer(self, worker: FunctionProcess, call: ProcessCall, record: CallRecord) -> CallAnswer:
        fresh, good = worker.init_ms is None, False
        begun = time.monotonic()
        try:
            if fresh:
                ready = self._set_up(worker, record)
                if ready.error:
                    return ready
                begun = time.monotonic()
            self._watch(worker, begun + call.kill_s)
            answer = worker.call(self._context(call, record), _trace(), call.event)
            good = True
        except ProcessEndedError as ended:
            answer = _ended_answer(worker, ended, call, record)
            answer.ms = (time.monotonic() - begun) * 1000
        finally:
            record.output += worker.output.take()
            self._give_back(worker, good=good)
        return answer

    def _set_up(self, worker: FunctionProcess, record: CallRecord) -> CallAnswer:
        try:
            self._watch(worker, time.monotonic() + _INIT_S)
            ready = worker.set_up(record.request)
            record.init_ms = worker.init_ms
            record.output = worker.output.take()
        finally:
            with self._change:
                self._starting -= 1
                self._change.notify_all()
        return ready

    def _context(self, call: ProcessCall, record: CallRecord) -> dict[str, object]:
        fields = lambda_runtime.context_fields(
            call.key.name, call.arn, call.idempotency_key, call.limit_s, record.memory_limit_mb
        )
        return {**fields, "aws_request_id": record.request}

    # -- lending -----------------------------------------------------------------------------------

    def _take(self, key: FunctionKey) -> FunctionProcess | None:
        """Wait for an idle process of a function, or for room to start one (None)."""
        while True:
            with self._change:
                while not self._idle.get(key):
                    if self._has_room():
                        self._count += 1
                        self._starting += 1
                        return None
                    self._change.wait()
                worker = self._idle[key].pop()
                self._busy.add(worker)
            if worker.is_usable():
                return worker
            log.info("a function's process is replaced", function=key.name)
            self._give_back(worker, good=False)

    def _has_room(self) -> bool:
        """Tell whether a process may be started; end one of another function if that makes room."""
        if self._starting >= _STARTING:
            return False
        if self._count < self._limit:
            return True
        longest = min(self._all_idle(), key=lambda worker: worker.idle_since, default=None)
        if longest is not None:
            self._remove(longest)
            longest.close()
        return longest is not None

    def _give_back(self, worker: FunctionProcess, *, good: bool) -> None:
        with self._change:
            worker.deadline = None
            self._busy.discard(worker)
            if good:
                worker.idle_since = time.monotonic()
                self._idle.setdefault(worker.key, []).append(worker)
                self._wake_watch(worker.idle_since + _IDLE_S)
            else:
                self._count -= 1
            self._change.notify_all()
        if not good:
            worker.close()

    def _all_idle(self) -> Iterator[FunctionProcess]:
        for workers in list(self._idle.values()):
            yield from list(workers)

    def _remove(self, worker: FunctionProcess) -> None:
        """Forget an idle process."""
        workers = self._idle[worker.key]
        workers.remove(worker)
        if not workers:
            del self._idle[worker.key]
        self._count -= 1

    # -- deadlines ---------------------------------------------------------------------------------

    def _watch(self, worker: FunctionProcess, deadline: float) -> None:
        with self._change:
            self._busy.add(worker)
            worker.deadline = deadline
            self._wake_watch(deadline)

    def _wake_watch(self, moment: float) -> None:
        """Let the watching thread look then at the latest."""
        if self._look_at is None:
            self._look_at = moment
            threading.Thread(target=self._watch_all, name="function-watch", daemon=True).start()
        elif moment < self._look_at:
            self._look_at = moment
            self._change.notify_all()

    def _watch_all(self) -> None:
        while True:
            with self._change:
                while self._look_at is not None and self._look_at > time.monotonic():
                    self._change.wait(self._look_at - time.monotonic())
                now = time.monotonic()
                for worker in self._busy:
                    if worker.deadline is not None and worker.deadline <= now:
                        worker.timed_out, worker.deadline = True, None
                        worker.kill()
                idle = [one for one in self._all_idle() if one.idle_since + _IDLE_S <= now]
                for worker in idle:
                    self._remove(worker)
                dues = [one.deadline for one in self._busy if one.deadline is not None]
                dues += [one.idle_since + _IDLE_S for one in self._all_idle()]
                self._look_at = min(dues, default=None)
                ended = self._look_at is None
            for worker in idle:
                worker.close()
            if ended:
                return


def _ended_answer(
    worker: FunctionProcess, ended: ProcessEndedError, call: ProcessCall, record: CallRecord
) -> CallAnswer:
    """Return what the end of a process is to its caller."""
    if worker.timed_out:
        limit = _INIT_S if worker.init_ms is None else call.limit_s
        said = _said(record, f"Task timed out after {limit:.2f} seconds")
        failure = InvocationError(TIMED_OUT, said, record.request)
    else:
        failure = lambda_runtime.exit_error(ended.code, record.request)
    return CallAnswer(failure.cause, failure.name)


def _said(record: CallRecord, message: str) -> str:
    return f"RequestId: {record.request} Error: {message}"


def _environment(key: FunctionKey, memory_mb: int) -> dict[str, str]:
    """Return the variables of a function: the server's, Lambda's own, those of its entry."""
    found = clean_environment(key.options)
    region = settings.STEPYARD_REGION
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        found.setdefault(name, region)
    found |= {
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
        found["MALLOC_ARENA_MAX"] = "1"
    return found | dict(key.options.environment)


def _trace() -> str:
    """Return the trace of a call, which is not sampled: nothing is sent to X-Ray."""
    root = f"1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]}"
    return f"Root={root};Parent={uuid.uuid4().hex[:16]};Sampled=0"


class _CurrentPool:
    """The pool of this process, made at the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None

    def get(self) -> ProcessPool:
        """Return the pool."""
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPool(settings.STEPYARD_FUNCTION_PROCESSES or _DEFAULT)
                atexit.unregister(self.close)
                atexit.register(self.close)
            return self._pool

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


def process_ids() -> list[int]:
    """Return the numbers of the processes of this server process."""
    return _current.get().pids


def close_processes() -> None:
    """End all processes of functions."""
    _current.close()
