"""A pool of warm child processes that evaluate JSONata and are killed after a time limit.

An expression may loop for ever, so ``Pool`` sends it to a child process (``jsonata_child``).
Expressions that surely end are evaluated in this process (``evaluate_here``).
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.data import jsonata_eval

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.jsonata_dialect import Evaluator

LIMIT_S = 1.6  # the child's own bound is 1.4 seconds
_START_S = 10.0
_CHILDREN = 2
_MAX_ANSWER = 16 * 1024 * 1024
_CHILD = Path(__file__).resolve().with_name("jsonata_child.py")


class _Child:
    """One child process; used by one caller at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._fresh = True

    def ask(self, request: bytes) -> tuple[str, Any]:
        """Send a request and return the answer; kill the process if it takes too long."""
        process = self._running()
        limit = _START_S if self._fresh else LIMIT_S
        try:
            answer = _exchange(process, request, limit)
        except OSError:
            answer = None
        if answer is None:
            self.end()
            return jsonata_eval.ERROR, jsonata_eval.TIMEOUT
        self._fresh = False
        if not answer:
            self.end()
            return jsonata_eval.ERROR, jsonata_eval.MEMORY
        kind, value = json.loads(answer)
        return kind, value

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.end()
            command = [sys.executable, "-I", str(_CHILD)]
            self._process = subprocess.Popen(  # noqa: S603 - our own file
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
            self._fresh = True
            _exchange(self._process, _WARM_UP, _START_S)
            self._fresh = False
        return self._process

    def end(self) -> None:
        """Kill the process, if there is one, and close its pipes."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


_readers = futures.ThreadPoolExecutor(_CHILDREN, "jsonata")  # starts no thread by itself
_WARM_UP = b'{"text":"1","bindings":{},"seed":0}\n'


def _exchange(process: subprocess.Popen[bytes], request: bytes, limit: float) -> bytes | None:
    """Send a request; return the answer's line, empty if the child ended, None if it is late."""
    if process.stdin is None or process.stdout is None:
        return None
    process.stdin.write(request)
    descriptor = process.stdout.fileno()
    if not hasattr(select, "poll"):  # Windows: a thread reads instead
        reading = _readers.submit(_read_line, descriptor, lambda: True)
        try:
            return reading.result(limit)
        except futures.TimeoutError:
            return None  # the caller kills the child, and so ends the thread's read
    # select.select raises for descriptors above 1023, which a server with many connections has
    readable = select.poll()
    readable.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + limit
    return _read_line(
        descriptor, lambda: bool(readable.poll(max(deadline - time.monotonic(), 0) * 1000))
    )


def _read_line(descriptor: int, wait: Callable[[], bool]) -> bytes | None:
    """Return a line; empty at the end of the pipe, None if too long or ``wait`` returns False."""
    answer = bytearray()
    while not answer.endswith(b"\n"):
        if not wait():
            return None
        part = os.read(descriptor, 1 << 20)
        answer += part
        if not part:
            return b""
        if len(answer) > _MAX_ANSWER:
            return None
    return bytes(answer)


class Pool:
    """Child processes, each used by one caller at a time."""

    def __init__(self, size: int) -> None:
        """Create an empty pool; children start when needed."""
        self._free = [_Child() for _ in range(size)]
        self._returned = threading.Condition()

    def evaluate(self, text: str, bindings: dict[str, Any], seed: int) -> tuple[str, Any]:
        """Evaluate an expression in a child; the result is that of ``jsonata_eval.evaluate``."""
        request = {"text": text, "bindings": bindings, "seed": seed}
        line = json.dumps(request, separators=(",", ":")).encode() + b"\n"
        with self._returned:
            while not self._free:
                self._returned.wait()
            child = self._free.pop()
        try:
            return child.ask(line)
        finally:
            with self._returned:
                self._free.append(child)
                self._returned.notify()

    def end(self) -> None:
        """Kill the idle child processes; the next call starts a new child process."""
        with self._returned:
            for child in self._free:
                child.end()


POOL = Pool(_CHILDREN)
atexit.register(POOL.end)
_local = threading.local()
_KEPT = 512


def evaluate_here(text: str, bindings: dict[str, Any], seed: int) -> tuple[str, Any]:
    """Evaluate a safe expression in this process, parsed once per thread.

    Evaluation changes the parsed form, so threads cannot share one.
    """
    evaluators: dict[str, Evaluator] | None = getattr(_local, "evaluators", None)
    if evaluators is None or len(evaluators) > _KEPT:
        evaluators = _local.evaluators = {}
    if text not in evaluators:
        evaluators[text] = jsonata_eval.compiled(text)
    return jsonata_eval.evaluate(evaluators[text], bindings, seed)
