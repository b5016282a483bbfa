"""Read the output of a function process and split it by call.

Output and answers come in two pipes without a common order. With ``poll`` the caller waits for
both: all output printed before an answer is in its pipe by then, so the caller reads the rest of it
after the answer. Windows has no ``poll``: there a thread reads the output, and the process writes a
mark at the end of each call's output.
"""

from __future__ import annotations

import os
import select
import threading
from typing import IO, Protocol

from console.functions.output import MOST_OUTPUT, BoundedOutput

_READ_BYTES = 65536
_MOST_READS = 64
"""The maximum number of reads of the rest of an output: a thread of the function may continue to
print.
"""
_MARK = "\0end of {}\0\n"
_MARK_S = 1.0
"""A function may have closed its output, and then no mark comes."""


class CallOutput(Protocol):
    """The output of a process. ``mark``: written by the process after each call, "" for none."""

    mark: str

    def expect(self, request: str) -> None:
        """Begin a call."""

    def wait_for_answer(self) -> None:
        """Return when an answer can be read or the process has ended."""

    def give_up(self) -> None:
        """Expect no mark any more: the function has closed its output."""

    def take(self) -> str:
        """Return the output of the call, after its answer or the end of the process."""

    def close(self) -> None:
        """Stop reading: the process has ended."""


class PolledOutput:
    """Reads the output in the calling thread while that waits for the answer."""

    mark = ""

    def __init__(self, pipe: IO[bytes], answers: int) -> None:
        self._pipe = pipe
        self._output = pipe.fileno()
        self._answers = answers
        self._text = BoundedOutput()
        self._open = True
        os.set_blocking(self._output, False)
        self._poll = select.poll()
        self._poll.register(answers, select.POLLIN)
        self._poll.register(self._output, select.POLLIN)

    def expect(self, request: str) -> None:
        """Begin a call."""

    def wait_for_answer(self) -> None:
        """Return when an answer can be read or the process has ended."""
        while True:
            ready = self._poll.poll()
            if any(pipe == self._answers for pipe, _ in ready):
                return
            self._read()

    def give_up(self) -> None:
        """Do nothing: there is no mark."""

    def take(self) -> str:
        """Return the output of the call, after its answer or the end of the process."""
        for _ in range(_MOST_READS):
            if not self._open or not self._read():
                break
        return self._text.take()

    def close(self) -> None:
        """Stop reading: the process has ended."""
        self._pipe.close()

    def _read(self) -> bool:
        """Read the available output; return whether there was any."""
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._text.add(data)
        else:
            self._poll.unregister(self._output)
            self._open = False
        return bool(data)


class MarkedOutput:
    """Reads the output in a thread, which closes the pipe at its end."""

    mark = _MARK

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._change = threading.Condition()
        self._mark = b""
        self._marked = False
        self._ended = False
        self._text = BoundedOutput()
        self._rest = b""  # end of the last read: it may be the beginning of the mark
        threading.Thread(target=self._read, name="function-output", daemon=True).start()

    def expect(self, request: str) -> None:
        """Begin a call, whose output ends with its mark."""
        with self._change:
            self._mark, self._marked = _MARK.format(request).encode(), False

    def wait_for_answer(self) -> None:
        """Return at once: reading the answer blocks."""

    def give_up(self) -> None:
        """Expect no mark any more: the function has closed its output."""
        with self._change:
            self._marked = True

    def take(self) -> str:
        """Return the output of the call, after its mark or the end of the process."""
        with self._change:
            self._change.wait_for(lambda: self._marked or self._ended, _MARK_S)
            if not self._marked:
                self._text.add(self._rest)
                self._rest = b""
            text = self._text.take()
            rest, self._rest = self._rest, b""
            self._text.add(rest)
        return text

    def close(self) -> None:
        """Do nothing: the thread closes the pipe at its end."""

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._pipe.fileno(), _READ_BYTES)
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
                self._text.add(before)
                self._rest, self._marked = after, True
                self._change.notify_all()
                return
            keep = len(data) - len(self._mark) + 1
            self._text.add(data[: max(keep, 0)])
            self._rest = data[max(keep, 0) :]
            return
        self._rest = data[-MOST_OUTPUT:]


def can_poll() -> bool:
    """Whether this platform can wait for several pipes at once."""
    return hasattr(select, "poll")


def open_output(pipe: IO[bytes], answers: int) -> CallOutput:
    """Return the output of a process. ``answers``: the pipe of its answers."""
    return PolledOutput(pipe, answers) if can_poll() else MarkedOutput(pipe)
