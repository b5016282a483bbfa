"""The child process that evaluates JSONata which may not end: one JSON line in, one out.

Memory is limited by the system, time by the expression's own bound and, beyond that, by the parent
who kills this process.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

MEMORY = 400 * 1024 * 1024


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    evaluation = _evaluation()
    compiled = lru_cache(maxsize=256)(evaluation.compiled)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    sys.setrecursionlimit(6_000)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            expression = compiled(request["text"])
            answer = evaluation.evaluate(
                expression, request["bindings"], request["seed"], request["now_ms"]
            )
            text = json.dumps(answer)
        except MemoryError:
            text = json.dumps((evaluation.ERROR, "Expression evaluation memory limit exceeded"))
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _evaluation() -> Any:
    """Load the evaluator by its file: importing the package would cost the child half its start."""
    folder = Path(__file__).resolve().parent
    sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != folder]
    spec = importlib.util.spec_from_file_location("jsonata_eval", folder / "jsonata_eval.py")
    if spec is None or spec.loader is None:
        raise ImportError("jsonata_eval.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
