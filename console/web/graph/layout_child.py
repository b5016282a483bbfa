"""Graphviz layouts in a child process: one JSON line in, one out.

Graphviz has no limit of its own, and pygraphviz holds the GIL while it works. In a process of its
own that is harmless: memory is limited by the system (``RLIMIT_AS``), processor time by a timer
that ends this process (``SIGPROF``), and the parent kills a child that takes too long.

It says ``{}`` when it is ready. Request: ``{"dot": text, "seconds": processor time left}``. Answer:
``{"seconds": processor time used, "drawn": {...}}``, where ``drawn`` is the result of
``read_json``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = 1024 * 1024 * 1024
"""Bytes of address space."""
_POSIX = os.name == "posix"
_NICENESS = 5  # who calls the API goes first


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--installed", action="store_true", help="use the dot on the PATH")
    parser.add_argument("--memory", type=int, default=MEMORY, help="bytes")
    parser.add_argument("--processors", default="", help="processor numbers, by comma")
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what a library prints is no answer
    draw = (None if options.installed else _bundled_graphviz()) or _installed_graphviz
    _limit_memory(options.memory)
    _lower_priority(options.processors)
    answers.write("{}\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        begun = time.process_time()
        _limit_seconds(request["seconds"])
        drawn = read_json(json.loads(draw(request["dot"], request["seconds"])))
        _limit_seconds(0)
        answer = {"seconds": time.process_time() - begun, "drawn": drawn}
        with contextlib.suppress(BrokenPipeError):  # the parent has ended; so does the loop
            answers.write(json.dumps(answer, separators=(",", ":")) + "\n")
            answers.flush()


def read_json(drawing: dict[str, Any]) -> dict[str, Any]:
    """Extract the used parts of Graphviz's output (``json0``); lengths are points, upwards.

    Returns ``{"box": text, "nodes": {id: text}, "edges": [[id, curve, label's middle or ""]]}``.
    """
    return {
        "box": drawing["bb"],
        "nodes": {thing["name"]: thing["pos"] for thing in drawing.get("objects", ())},
        "edges": [
            [edge["id"], edge["pos"], edge.get("lp", "")] for edge in drawing.get("edges", ())
        ],
    }


def _bundled_graphviz() -> Callable[[str, float], str] | None:
    """Return a function that draws by pygraphviz's libraries, None if missing."""
    try:
        import pygraphviz
    except ImportError:
        return None

    def draw(dot: str, _seconds: float) -> str:
        drawn: bytes = pygraphviz.AGraph(string=dot).draw(format="json0", prog="dot")
        return drawn.decode()

    return draw


def _installed_graphviz(dot: str, seconds: float) -> str:
    """Draw with the ``dot`` on the PATH, which also ends at the processor time limit."""

    def limit() -> None:
        with contextlib.suppress(ImportError):
            import resource

            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))

    command = ["dot", "-Tjson0"]
    process = subprocess.run(  # noqa: S603 - the command is ours
        command,
        input=dot,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit if _POSIX else None,  # this process has one thread
    )
    if _POSIX and process.returncode == -signal.SIGXCPU:
        os.kill(os.getpid(), signal.SIGPROF)
    process.check_returncode()
    return process.stdout


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _lower_priority(processors: str) -> None:
    """Lower the priority below the server's, and allow all processors."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        os.nice(_NICENESS)
        os.sched_setaffinity(0, {int(processor) for processor in processors.split(",")})


def _limit_seconds(seconds: float) -> None:
    """End this process after this much processor time; 0 removes the limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.001) if seconds else 0)


if __name__ == "__main__":
    main()
