"""The engine's one door: Amazon States Language without clock, randomness, I/O or Django.

``parse`` and ``check`` read definitions, ``advance`` takes one message as far as it goes, ``run``
runs a whole machine in memory, ``replay`` a recorded execution; ``graph`` and ``paint`` say what to
draw.
"""

from __future__ import annotations

from engine.data.places import Places, places
from engine.differences import Difference, Line, lines
from engine.errors import (
    DefinitionError,
    EngineBug,
    EngineError,
    InterpreterError,
    JsonTextError,
    NewerFormat,
    QueryEvaluationError,
    StatesError,
)
from engine.graph import TOP, Edge, Graph, Group, Node, graph
from engine.history import event_types
from engine.history.batch import EventBatch
from engine.history.event_types import DETAILS, EVENT_TYPES, EventType, Family, Stage, event_names
from engine.history.fold import Trace
from engine.history.paint import paint
from engine.history.visits import GroupAttempt, Visit, Visits
from engine.jsontext import byte_size, dumps, has_surrogate, loads
from engine.language import Diagnostic, check, parse, parse_state
from engine.language.lint import FORMATS as LINT_FORMATS
from engine.language.model import Machine, Pattern, QueryLanguage, Resource
from engine.language.processors import processor_definition
from engine.language.references import references
from engine.language.resources import parse_resource
from engine.limits import LIMITS, MAX_BYTES, limit, too_long, use_limits
from engine.replay import SCENARIO, replay
from engine.runtime.advance import BUDGET, EXECUTION_TIMER, MAX_EXECUTION_S, abandon, advance
from engine.runtime.commands import (
    CancelTask,
    CancelTimer,
    Command,
    Finish,
    Proceed,
    RedriveMapRun,
    RunTask,
    SetTimer,
)
from engine.runtime.context import iso
from engine.runtime.events import Event
from engine.runtime.memory import Result, run
from engine.runtime.messages import (
    Continue,
    Message,
    Redrive,
    Start,
    Stop,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
    TaskSucceeded,
    TaskTimedOut,
    TimerFired,
)
from engine.runtime.redrive import unsuccessful
from engine.runtime.run import NEW_RUN, DictValues, Moment, Run, Step, Values
from engine.runtime.states.distributed import child_inputs
from engine.runtime.tokens import task_token
from engine.runtime.trial import Mock, Trial, TrialError, try_state
from engine.runtime.turn import MAX_EVENTS

__all__ = [
    "BUDGET",
    "DETAILS",
    "EVENT_TYPES",
    "EXECUTION_TIMER",
    "LIMITS",
    "LINT_FORMATS",
    "MAX_BYTES",
    "MAX_EVENTS",
    "MAX_EXECUTION_S",
    "NEW_RUN",
    "SCENARIO",
    "TOP",
    "CancelTask",
    "CancelTimer",
    "Command",
    "Continue",
    "DefinitionError",
    "Diagnostic",
    "DictValues",
    "Difference",
    "Edge",
    "EngineBug",
    "EngineError",
    "Event",
    "EventBatch",
    "EventType",
    "Family",
    "Finish",
    "Graph",
    "Group",
    "GroupAttempt",
    "InterpreterError",
    "JsonTextError",
    "Line",
    "Machine",
    "Message",
    "Mock",
    "Moment",
    "NewerFormat",
    "Node",
    "Pattern",
    "Places",
    "Proceed",
    "QueryEvaluationError",
    "QueryLanguage",
    "Redrive",
    "RedriveMapRun",
    "Resource",
    "Result",
    "Run",
    "RunTask",
    "SetTimer",
    "Stage",
    "Start",
    "StatesError",
    "Step",
    "Stop",
    "TaskFailed",
    "TaskStarted",
    "TaskSubmitted",
    "TaskSucceeded",
    "TaskTimedOut",
    "TimerFired",
    "Trace",
    "Trial",
    "TrialError",
    "Values",
    "Visit",
    "Visits",
    "abandon",
    "advance",
    "byte_size",
    "check",
    "child_inputs",
    "dumps",
    "event_names",
    "event_types",
    "graph",
    "has_surrogate",
    "iso",
    "limit",
    "lines",
    "loads",
    "paint",
    "parse",
    "parse_resource",
    "parse_state",
    "places",
    "processor_definition",
    "references",
    "replay",
    "run",
    "task_token",
    "too_long",
    "try_state",
    "unsuccessful",
    "use_limits",
]
