"""Write the logs of function calls in batches, on a background thread.

A call does not wait for this: its log is written ``_PAUSE_S`` later, in one transaction with the
logs of other calls. A killed process only loses the logs of its last calls. During a database
outage logs are kept up to ``_MOST`` bytes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog
from django.db import connections

from console.db import outages
from console.db.rows import storable
from console.db.writer import is_outage
from console.features.logs import function_log_store as function_logs
from console.features.logs.models import FunctionLog

if TYPE_CHECKING:
    from console.functions.pool import CallRecord

log = structlog.get_logger(__name__)
_PAUSE_S = 0.1
_RETRY_S = 1.0
_MOST = 16 * 1024 * 1024
_AT_ONCE = 200


class LogWriter:
    """Thread that writes queued logs, and ends after a while without any."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._logs: list[FunctionLog] = []
        self._bytes = 0
        self._writing = False
        self._thread: threading.Thread | None = None

    def add(self, execution_id: int, task: int, function: str, record: CallRecord) -> None:
        """Queue the log of a call; drop it if the queue is full."""
        row = FunctionLog(
            execution_id=execution_id,
            task=task,
            function=function[:140],
            request=record.request,
            started_ms=record.started_ms,
            duration_ms=record.duration_ms,
            init_ms=record.init_ms,
            memory_mb=record.memory_mb,
            memory_limit_mb=record.memory_limit_mb,
            error=storable(record.error)[:256],
            output=storable(record.output),
        )
        with self._change:
            if self._bytes > _MOST:
                log.warning("the log of a function's call is lost: the database does not take it")
                return
            self._logs.append(row)
            self._bytes += len(row.output)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="function-logs", daemon=True
                )
                self._thread.start()
            if len(self._logs) in (1, _AT_ONCE):  # what the thread may wait for
                self._change.notify_all()

    def flush(self, seconds: float) -> None:
        """Wait until everything is written, up to a time limit."""
        with self._change:
            self._change.wait_for(lambda: not self._logs and not self._writing, seconds)

    def _work(self) -> None:
        try:
            while True:
                with self._change:
                    if not self._change.wait_for(lambda: self._logs, 10.0):
                        self._thread = None
                        return
                    self._change.wait_for(lambda: len(self._logs) >= _AT_ONCE, _PAUSE_S)
                    batch, self._logs = self._logs[:_AT_ONCE], self._logs[_AT_ONCE:]
                    self._writing = True
                unwritten = self._write(batch)
                with self._change:
                    self._writing = False
                    self._bytes -= _count_bytes(batch) - _count_bytes(unwritten)
                    self._logs[:0] = unwritten
                    self._change.notify_all()
                if unwritten:
                    threading.Event().wait(_RETRY_S)
        finally:
            connections.close_all()

    def _write(self, batch: list[FunctionLog]) -> list[FunctionLog]:
        """Write a batch; return the logs to retry after a database outage.

        A log that the database refuses is lost alone: kept, it would hold up all that follow.
        """
        try:
            function_logs.insert_logs(batch)
        except Exception as error:
            if is_outage(error):
                outages.note_outage("logs of functions", error)
                return batch
            if len(batch) == 1:
                log.exception("the log of a function's call is lost", function=batch[0].function)
                return []
            middle = len(batch) // 2
            return [*self._write(batch[:middle]), *self._write(batch[middle:])]
        return []


def _count_bytes(logs: list[FunctionLog]) -> int:
    return sum(len(row.output) for row in logs)


LOGS = LogWriter()
"""The writer of this process."""


def add_log(execution_id: int, task: int, function: str, record: CallRecord) -> None:
    """Queue the log of a call."""
    LOGS.add(execution_id, task, function, record)


def flush_logs(seconds: float) -> None:
    """Write the queued logs within some seconds."""
    LOGS.flush(seconds)
