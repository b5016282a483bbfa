"""The dataclasses of a compiled state machine: ``Machine``, ``Task``, ``Choice`` and so on.

Each state type has a frozen dataclass with the fields that the type may have, and no others. Every
path, template and JSONata expression is compiled already (``engine.data``): running never parses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from engine.data.expression import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.data.expression import Expression
    from engine.data.paths import ResultPath
    from engine.language.choice import ChoiceCondition


class QueryLanguage(StrEnum):
    """The two query languages of ASL."""

    JSONPATH = "JSONPath"  # the default: fields of paths, in stages
    JSONATA = "JSONata"  # expressions between {% and %}


class IntegrationPattern(StrEnum):
    """How a Task waits for its service (the suffix of the Resource, as ``.sync``)."""

    REQUEST_RESPONSE = ""  # continues with the service's first answer
    SYNC = ".sync"  # waits for the end of the job
    SYNC_2 = ".sync:2"  # as SYNC, and the output of a nested execution is JSON, not text
    WAIT_FOR_TASK_TOKEN = ".waitForTaskToken"  # waits for SendTaskSuccess or SendTaskFailure


class TaskKind(StrEnum):
    """The worker of a task."""

    LAMBDA = "lambda"  # a function, called at once
    ACTIVITY = "activity"  # a worker that polls for tasks
    SERVICE = "service"  # a service integration
    MAP = "map"  # the child executions of a distributed Map; no Resource names it


class MachineType(StrEnum):
    """AWS's ``StateMachineType``."""

    STANDARD = "STANDARD"  # durable, at most a year, with a history
    EXPRESS = "EXPRESS"  # short; has no activities, job runs or task tokens


@dataclass(frozen=True, slots=True)
class Resource:
    """The parsed Resource of a Task.

    ``kind``: ``lambda`` (a function ARN), ``activity`` (an activity ARN) or ``service`` (an
    integration). ``service``/``action`` for services: ``sqs``/``sendMessage``,
    ``aws-sdk:s3``/``getObject``.
    """

    arn: str
    kind: TaskKind
    service: str = ""
    action: str = ""
    pattern: IntegrationPattern = IntegrationPattern.REQUEST_RESPONSE


@dataclass(frozen=True, slots=True)
class Assign:
    """Compiled ``Assign``: variable name -> expression, all evaluated with the values at entry."""

    targets: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class Retrier:
    """One entry of ``Retry``. Times in seconds; ``max_attempts`` 0: never."""

    error_equals: tuple[str, ...]
    interval_seconds: int = 1
    max_attempts: int = 3
    backoff_rate: float = 2.0
    max_delay_seconds: int | None = None
    full_jitter: bool = False


@dataclass(frozen=True, slots=True)
class DataFlow:
    """The fields that process a state's data.

    JSONPath: ``input_path`` -> ``parameters`` -> work -> ``result_selector`` -> ``result_path``
    (None discards the result) -> ``output_path``. JSONata: ``arguments`` -> work -> ``output``.
    ``assign``: both. A field that the state's type or language does not have keeps its default.
    """

    input_path: Expression = ROOT
    parameters: Expression | None = None
    result_selector: Expression | None = None
    result_path: ResultPath | None = None  # parse sets REPLACE where the type has a ResultPath
    output_path: Expression = ROOT
    arguments: Expression | None = None
    output: Expression | None = None
    assign: Assign | None = None


@dataclass(frozen=True, slots=True)
class Catcher:
    """One entry of ``Catch``; ``data`` holds its ResultPath, or Output, and Assign."""

    error_equals: tuple[str, ...]
    next: str
    data: DataFlow


@dataclass(frozen=True, slots=True)
class Recovery:
    """``Retry`` and ``Catch``, in the order they are tried."""

    retry: tuple[Retrier, ...] = ()
    catch: tuple[Catcher, ...] = ()


NO_RECOVERY = Recovery()


@dataclass(frozen=True, slots=True, kw_only=True)
class _StateFields:
    """The fields that every state has. ``pointer``: its JSON pointer in the definition."""

    name: str
    language: QueryLanguage = QueryLanguage.JSONPATH
    comment: str | None = None
    pointer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass(_StateFields):
    """``result``: the literal Result, or ``engine.data.expression.ABSENT``."""

    data: DataFlow
    result: Any
    next: str | None = None  # None is ``End: true``, here and below


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(_StateFields):
    """``timeout_seconds``/``heartbeat_seconds``: an expression that yields a number, or None."""

    resource: Resource
    data: DataFlow
    recovery: Recovery = NO_RECOVERY
    timeout_seconds: Expression | None = None
    heartbeat_seconds: Expression | None = None
    credentials: Expression | None = None
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRule:
    """One entry of ``Choices``; ``data`` holds its Assign and Output."""

    condition: ChoiceCondition
    next: str
    data: DataFlow


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(_StateFields):
    """A Choice: the first rule that holds, else ``default``.

    ``data.assign`` belongs to the default; each rule has an Assign of its own.
    """

    rules: tuple[ChoiceRule, ...]
    data: DataFlow
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(_StateFields):
    """A wait for seconds, or until a time.

    ``field``: which field was given (it is named in errors). ``path``: its text when a …Path field.
    ``until``: yields seconds for Seconds/SecondsPath, an RFC 3339 text for the other two.
    """

    field: Literal["Seconds", "SecondsPath", "Timestamp", "TimestampPath"]
    until: Expression
    data: DataFlow
    path: str | None = None
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeed(_StateFields):
    """Ends its line of control successfully."""

    data: DataFlow


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail(_StateFields):
    """Ends its line of control with an error; both texts are optional."""

    error: Expression | None = None
    cause: Expression | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """``StartAt`` and ``States`` of a machine, a branch, or an item processor."""

    start_at: str
    states: Mapping[str, State]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(_StateFields):
    """All branches run; the output is the array of their outputs in branch order."""

    branches: tuple[Block, ...]
    data: DataFlow
    recovery: Recovery = NO_RECOVERY
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributed:
    """The fields of a distributed Map; templates inside are compiled."""

    label: str | None = None
    item_reader: Mapping[str, Any] | None = None
    item_batcher: Mapping[str, Any] | None = None
    result_writer: Mapping[str, Any] | None = None
    tolerated_failure_count: Expression | None = None
    tolerated_failure_percentage: Expression | None = None


INLINE_FAULT = (
    "The ItemReader, ItemBatcher and ResultWriter fields are not supported for INLINE maps"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(_StateFields):
    """``items``: ItemsPath or Items. ``selector``: ItemSelector or, in old texts, Parameters.

    ``max_concurrency_path``: the text of MaxConcurrencyPath when given (it is named in errors).
    ``distributed``: None for an inline Map. ``unusable``: an inline Map has fields with which it
    fails.
    """

    items: Expression
    processor: Block
    data: DataFlow
    selector: Expression | None = None
    max_concurrency: Expression | None = None
    max_concurrency_path: str | None = None
    distributed: Distributed | None = None
    unusable: bool = False
    recovery: Recovery = NO_RECOVERY
    next: str | None = None


State = Pass | Task | Choice | Wait | Succeed | Fail | Parallel | Map


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A checked, compiled definition. ``text`` is the definition exactly as it was given."""

    block: Block
    text: str
    language: QueryLanguage = QueryLanguage.JSONPATH
    comment: str | None = None
    timeout_seconds: int | None = None
    labels: tuple[str, ...] = field(default=())
    activities: tuple[str, ...] = field(default=())  # ARNs of the activities it uses
