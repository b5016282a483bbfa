"""An interpreter of Amazon States Language (ASL): no clock, randomness, I/O or Django.

This module is the public API: code outside of the package imports names from here, never from the
modules inside. Eight words are enough to read it:

* ``Machine``: a parsed, checked and compiled definition.
* ``Run``: the frozen snapshot of one execution's progress.
* ``Frame``: one line of control of a run: the execution itself, a branch, or an iteration.
* ``Message``: an event from outside that an execution reacts to, such as ``TaskSucceeded``.
* ``Event``: one line of the history, with AWS's type and details.
* ``Command``: an action for the caller after storing a step, such as ``RunTask``.
* ``Step``: the next run, the new events and the commands.
* ``Moment``: the time, the random seed and the rest of the outside world at a step.

The main functions and classes: ``parse`` returns the machine of a definition, ``check`` its
problems. ``advance`` computes one step; how it works is described in ``engine.runtime``. ``run``
runs a whole machine in memory, for unit tests. ``replay`` plays a recorded execution again and
returns the differences. ``try_state`` runs one state, as TestState does. ``build_graph`` returns
the states and transitions of a machine for a drawing. ``paint`` returns the status of each state
from a whole history; ``Trace`` computes statuses and visits from a history in portions
(``engine.history``). ``CoverageReader`` returns the points of a machine (states, transitions,
rules, error paths) that a history reached (``engine.coverage``).
"""

from __future__ import annotations

from engine.coverage.points import Point, PointKind
from engine.coverage.reading import CoverageReader, Reached
from engine.coverage.suggesting import Suggestion, TaskScript, suggest
from engine.data.path_sets import PathSet, compile_path_set
from engine.differences import ControlPath, ReplayDifference, control_paths
from engine.errors import (
    DefinitionError,
    EngineBug,
    EngineError,
    InterpreterError,
    JsonTextError,
    NewerFormat,
    QueryEvaluationError,
    StatesError,
    failure_problem,
)
from engine.execution_status import ExecutionStatus
from engine.graph import (
    TOP,
    Edge,
    EdgeKind,
    Graph,
    Node,
    StateGroup,
    build_graph,
    draw_unfinished,
)
from engine.history import event_types
from engine.history.batch import EventBatch, large_payload
from engine.history.event_types import DETAILS, EVENT_TYPES, EventType, Family, Stage, event_names
from engine.history.fold import Trace, paint
from engine.history.owners import name_states
from engine.history.visits import (
    ControlLine,
    GroupAttempt,
    Visit,
    Visits,
    VisitStatus,
    covered_ms,
)
from engine.jsontext import (
    LIMITS,
    MAX_BYTES,
    byte_size,
    dumps,
    has_surrogate,
    is_too_long,
    least_size,
    loads,
    payload_limit,
    unique_members,
    use_limits,
)
from engine.language import (
    Diagnostic,
    check,
    current_platform,
    map_mode_around,
    parse,
    parse_state,
    parse_stored,
    parse_stored_state,
    use_platform,
)
from engine.language.diagnostics import DiagnosticCode, Severity
from engine.language.fields import fields_of
from engine.language.lint import FORMATS as LINT_FORMATS
from engine.language.model import (
    IntegrationPattern,
    Machine,
    MachineType,
    QueryLanguage,
    Resource,
    TaskKind,
)
from engine.language.processors import is_express_processor, processor_definition
from engine.language.references import variable_references
from engine.language.resources import parse_resource, service_actions
from engine.language.schema import json_schema
from engine.limits_ahead import LimitAhead, LimitKind, limits_ahead, most_within_a_second
from engine.replay import SCENARIO, call_request, replay, replayed_events
from engine.runtime.advance import BUDGET, EXECUTION_TIMER, MAX_EXECUTION_S, abandon, advance
from engine.runtime.breakpoints import (
    MOST_BREAKPOINTS,
    Breakpoint,
    BreakpointError,
    BreakTime,
    DebugPlan,
    Halt,
    breakpoints_text,
    check_breakpoints,
    own_states,
    read_breakpoints,
    without_marks,
)
from engine.runtime.commands import (
    AnsweredTask,
    CancelTask,
    CancelTimer,
    Command,
    Finish,
    NoteEdit,
    Proceed,
    RedriveMapRun,
    RunTask,
    SetTimer,
)
from engine.runtime.context import iso_text
from engine.runtime.events import Event
from engine.runtime.faults import (
    FAULT_TYPES,
    MOST_FAULTS,
    ChildFaults,
    Fault,
    FaultError,
    FaultPlan,
    FaultTime,
    FaultType,
    describe_faults,
    describe_stored,
    describe_strike,
    faults_text,
    faulty_states,
    load_child_faults,
    read_faults,
    read_recorded_faults,
)
from engine.runtime.halted_lines import HaltedLine, describe_halt, halted_lines
from engine.runtime.memory import FunctionCall, NoAnswer, Result, StruckFault, run
from engine.runtime.messages import (
    AnswerTask,
    Continue,
    FailState,
    Message,
    Redrive,
    Release,
    SetBreakpoints,
    Skip,
    Start,
    Stop,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
    TaskSucceeded,
    TaskTimedOut,
    TimerFired,
)
from engine.runtime.mock_configuration import mocked_tasks
from engine.runtime.redrive import unsuccessful_states
from engine.runtime.release import ReleaseMessage
from engine.runtime.run import NEW_RUN, DictValues, Frame, Moment, Run, Step, Values
from engine.runtime.states.distributed import child_inputs
from engine.runtime.states.map_items import DatasetItem
from engine.runtime.tokens import task_token
from engine.runtime.trial import Mock, Trial, TrialError, TrialStatus, try_state
from engine.runtime.turn import MAX_EVENTS

__all__ = [
    "BUDGET",
    "DETAILS",
    "EVENT_TYPES",
    "EXECUTION_TIMER",
    "FAULT_TYPES",
    "LIMITS",
    "LINT_FORMATS",
    "MAX_BYTES",
    "MAX_EVENTS",
    "MAX_EXECUTION_S",
    "MOST_BREAKPOINTS",
    "MOST_FAULTS",
    "NEW_RUN",
    "SCENARIO",
    "TOP",
    "AnswerTask",
    "AnsweredTask",
    "BreakTime",
    "Breakpoint",
    "BreakpointError",
    "CancelTask",
    "CancelTimer",
    "ChildFaults",
    "Command",
    "Continue",
    "ControlLine",
    "ControlPath",
    "CoverageReader",
    "DatasetItem",
    "DebugPlan",
    "DefinitionError",
    "Diagnostic",
    "DiagnosticCode",
    "DictValues",
    "Edge",
    "EdgeKind",
    "EngineBug",
    "EngineError",
    "Event",
    "EventBatch",
    "EventType",
    "ExecutionStatus",
    "FailState",
    "Family",
    "Fault",
    "FaultError",
    "FaultPlan",
    "FaultTime",
    "FaultType",
    "Finish",
    "Frame",
    "FunctionCall",
    "Graph",
    "GroupAttempt",
    "Halt",
    "HaltedLine",
    "IntegrationPattern",
    "InterpreterError",
    "JsonTextError",
    "LimitAhead",
    "LimitKind",
    "Machine",
    "MachineType",
    "Message",
    "Mock",
    "Moment",
    "NewerFormat",
    "NoAnswer",
    "Node",
    "NoteEdit",
    "PathSet",
    "Point",
    "PointKind",
    "Proceed",
    "QueryEvaluationError",
    "QueryLanguage",
    "Reached",
    "Redrive",
    "RedriveMapRun",
    "Release",
    "ReleaseMessage",
    "ReplayDifference",
    "Resource",
    "Result",
    "Run",
    "RunTask",
    "SetBreakpoints",
    "SetTimer",
    "Severity",
    "Skip",
    "Stage",
    "Start",
    "StateGroup",
    "StatesError",
    "Step",
    "Stop",
    "StruckFault",
    "Suggestion",
    "TaskFailed",
    "TaskKind",
    "TaskScript",
    "TaskStarted",
    "TaskSubmitted",
    "TaskSucceeded",
    "TaskTimedOut",
    "TimerFired",
    "Trace",
    "Trial",
    "TrialError",
    "TrialStatus",
    "Values",
    "Visit",
    "VisitStatus",
    "Visits",
    "abandon",
    "advance",
    "breakpoints_text",
    "build_graph",
    "byte_size",
    "call_request",
    "check",
    "check_breakpoints",
    "child_inputs",
    "compile_path_set",
    "control_paths",
    "covered_ms",
    "current_platform",
    "describe_faults",
    "describe_halt",
    "describe_stored",
    "describe_strike",
    "draw_unfinished",
    "dumps",
    "event_names",
    "event_types",
    "failure_problem",
    "faults_text",
    "faulty_states",
    "fields_of",
    "halted_lines",
    "has_surrogate",
    "is_express_processor",
    "is_too_long",
    "iso_text",
    "json_schema",
    "large_payload",
    "least_size",
    "limits_ahead",
    "load_child_faults",
    "loads",
    "map_mode_around",
    "mocked_tasks",
    "most_within_a_second",
    "name_states",
    "own_states",
    "paint",
    "parse",
    "parse_resource",
    "parse_state",
    "parse_stored",
    "parse_stored_state",
    "payload_limit",
    "processor_definition",
    "read_breakpoints",
    "read_faults",
    "read_recorded_faults",
    "replay",
    "replayed_events",
    "run",
    "service_actions",
    "suggest",
    "task_token",
    "try_state",
    "unique_members",
    "unsuccessful_states",
    "use_limits",
    "use_platform",
    "variable_references",
    "without_marks",
]
