"""The exceptions of the engine, and the names of errors that ASL reserves.

The exceptions, by the party that has to act:

* ``DefinitionError`` - the caller sent a definition that is not a state machine.
* ``StatesError`` - a state failed with an error of ASL; Retry and Catch handle it.
* ``EngineBug`` - the developers of Stateyard; the step is not committed.
* ``NewerFormat`` - the operator; only the later version that wrote the snapshot can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL = "States.ALL"
TASK_FAILED = "States.TaskFailed"
TIMEOUT = "States.Timeout"
HEARTBEAT_TIMEOUT = "States.HeartbeatTimeout"
RUNTIME = "States.Runtime"
DATA_LIMIT_EXCEEDED = "States.DataLimitExceeded"
QUERY_EVALUATION = "States.QueryEvaluationError"
EXCEED_TOLERATED_FAILURE = "States.ExceedToleratedFailureThreshold"
INTRINSIC_FAILURE = "States.IntrinsicFailure"
RESULT_PATH_MATCH_FAILURE = "States.ResultPathMatchFailure"

_MAX_ERROR, _MAX_CAUSE = 256, 32_768
"""Characters. Source: SensitiveError and SensitiveCause of the service model."""

# ASL: "States.ALL ... cannot catch States.DataLimitExceeded or States.Runtime".
_BEYOND_ALL = frozenset({RUNTIME, DATA_LIMIT_EXCEEDED})


class EngineError(Exception):
    """Root of everything this package raises on purpose."""


class NewerFormat(EngineError, ValueError):
    """Only a later version of this program can read the snapshot, because it wrote it."""


class JsonTextError(EngineError):
    """The text is not JSON by RFC 8259, or exceeds the limit of nesting or size.

    ``line`` and ``column`` count from 1; None where the problem has no place.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        """The message is that of the service's parser, where it is known."""
        super().__init__(message)
        self.line = line
        self.column = column


class DefinitionError(EngineError):
    """The definition has errors; ``diagnostics`` lists every one of them."""

    def __init__(self, diagnostics: Sequence[object]) -> None:
        """Keep the diagnostics (``engine.Diagnostic``) in the order they were found."""
        super().__init__("; ".join(str(diagnostic) for diagnostic in diagnostics))
        self.diagnostics = tuple(diagnostics)


class EngineBug(EngineError):
    """The engine is in an impossible situation; the step must not be committed."""


class StatesError(EngineError):
    """An error of ASL, with an optional name and an optional cause.

    This class is for errors that tasks and Fail states report: their causes are not changed. An
    ``InterpreterError`` gets a prefix, "An error occurred while executing the state ...".
    """

    def __init__(
        self,
        name: str | None,
        cause: str | None = None,
        *,
        of_result: bool = False,
        fatal: bool = False,
    ) -> None:
        """Name and cause as in history events; ``of_result``: a task's result was refused.

        ``fatal``: the execution ends at once, whatever surrounds the state.

        Both are cut to what the service's answers can hold. An interpreter's cause may quote the
        whole input.
        """
        self.name = name and name[:_MAX_ERROR]
        self.cause = cause and cause[:_MAX_CAUSE]
        super().__init__(f"{self.name}: {self.cause}")
        self.of_result = of_result
        self.fatal = fatal


def failure_problem(error: str | None, cause: str | None) -> str:
    """Return why a task or state cannot fail with an error and a cause, "" if it can."""
    for name, text, most in (("error", error, _MAX_ERROR), ("cause", cause, _MAX_CAUSE)):
        if len(text or "") > most:
            return f"{name} has {len(text or '')} characters; at most {most} are accepted"
    return ""


class InterpreterError(StatesError):
    """The interpreter cannot continue; the runtime prefixes the cause with state and event id."""

    def __init__(self, cause: str, name: str = RUNTIME) -> None:
        """Cause without the prefix; the name is ``States.Runtime`` unless said otherwise."""
        super().__init__(name, cause, fatal=name == RUNTIME)


class QueryEvaluationError(InterpreterError):
    """A JSONata expression failed; ``location`` is the field as ``Output/total``."""

    def __init__(self, cause: str, location: str | None = None) -> None:
        """``location`` goes into the ``EvaluationFailed`` event; None leaves it out."""
        super().__init__(cause, QUERY_EVALUATION)
        self.location = location


def matches(error_equals: Sequence[str], name: str | None, *, of_result: bool = False) -> bool:
    """Return whether a Retrier or Catcher with these ErrorEquals handles an error.

    No entry matches ``States.Runtime``, not even its own name (recorded from the service). Only its
    own name matches ``States.DataLimitExceeded``; for a task's result ``States.ALL`` does, too
    (recorded). ``States.TaskFailed`` is a wildcard for all errors but timeouts. A missed heartbeat
    is also a ``States.Timeout``.
    """
    if name == RUNTIME:
        return False
    if of_result and ALL in error_equals:
        return True
    return any(_name_matches(entry, name) for entry in error_equals)


def _name_matches(entry: str, name: str | None) -> bool:
    if entry == name:
        return True
    if name in _BEYOND_ALL:
        return False
    if entry == ALL:
        return True
    if entry == TASK_FAILED:
        return name not in (TIMEOUT, HEARTBEAT_TIMEOUT)
    return entry == TIMEOUT and name == HEARTBEAT_TIMEOUT
