"""The child process that evaluates JSONata: a JSON line in, a JSON line out.

The operating system limits its memory. The expression's own time limit ends a long evaluation;
``jsonata_pool``, the parent, kills the process if that fails.
"""

from __future__ import annotations

import contextlib
import json
import sys
import types
from functools import lru_cache
from pathlib import Path
from typing import Any

MEMORY = 400 * 1024 * 1024


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    evaluation = _evaluation()
    compiled = lru_cache(maxsize=256)(evaluation.compiled)
    _limit_memory()
    sys.setrecursionlimit(6_000)
    answers, sys.stdout = sys.stdout, sys.stderr  # a library's prints must not mix with the answers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            expression = compiled(request["text"])
            answer = evaluation.evaluate(expression, request["bindings"], request["seed"])
            text = json.dumps(answer)
        except Exception as error:  # noqa: BLE001 - a child that ends answers nobody
            text = json.dumps(evaluation.failure(error))
        answers.write(text + "\n")
        answers.flush()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError):  # Windows
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def _evaluation() -> Any:
    """Import the evaluator without ``engine/__init__``, which would cost the child half its start.

    The packages stand empty: only their folders are known, so that the modules below import one
    another as everywhere else.
    """
    folder = Path(__file__).resolve().parent
    sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != folder]
    for name, place in (("engine", folder.parent), ("engine.data", folder)):
        package = types.ModuleType(name)
        package.__path__ = [str(place)]
        sys.modules[name] = package
    from engine.data import jsonata_eval

    return jsonata_eval


if __name__ == "__main__":
    main()
