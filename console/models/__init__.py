"""The database models: executions, machines, tasks, events, people and projects.

Models have no logic; only ``console.store`` writes the tables of executions.

Every execution-owned table leads its key with the execution's id, so PostgreSQL can be partitioned
or distributed by execution. Times are epoch milliseconds (``..._ms``). Payloads are text,
unchanged.

A feature has its models in a module ``models`` of its own. Every server has their tables, also one
without the feature (``ConsoleConfig.import_models``).
"""

from __future__ import annotations

from console.models.events import (
    Delivery,
    EventRule,
    EventTarget,
    OutboxEvent,
    ScheduleGroup,
    SchedulePause,
    StartLink,
)
from console.models.executions import (
    DebugEdit,
    Execution,
    HaltedExecution,
    HistoryEvent,
    InboxMessage,
    MapItem,
    MapRun,
    Pause,
    RunRow,
    RunValue,
    TaskRow,
    Timer,
)
from console.models.logs import LogGroup, LogRoute
from console.models.machines import (
    Activity,
    Alias,
    Definition,
    DefinitionDraft,
    MachineRevision,
    StateMachine,
    Tag,
    Version,
)
from console.models.notes import ExecutionNote
from console.models.people import (
    AccessKey,
    AuditEntry,
    Invitation,
    LoginAttempts,
    LoginLink,
    Membership,
    Project,
    Role,
    SavedView,
)
from console.models.project_settings import ProjectSetting
from console.models.quotas import ThrottledMinute, TokenBucket
from console.models.server import (
    ReadinessMinute,
    ServerFact,
    Worker,
)

__all__ = [
    "AccessKey",
    "Activity",
    "Alias",
    "AuditEntry",
    "DebugEdit",
    "Definition",
    "DefinitionDraft",
    "Delivery",
    "EventRule",
    "EventTarget",
    "Execution",
    "ExecutionNote",
    "HaltedExecution",
    "HistoryEvent",
    "InboxMessage",
    "Invitation",
    "LogGroup",
    "LogRoute",
    "LoginAttempts",
    "LoginLink",
    "MachineRevision",
    "MapItem",
    "MapRun",
    "Membership",
    "OutboxEvent",
    "Pause",
    "Project",
    "ProjectSetting",
    "ReadinessMinute",
    "Role",
    "RunRow",
    "RunValue",
    "SavedView",
    "ScheduleGroup",
    "SchedulePause",
    "ServerFact",
    "StartLink",
    "StateMachine",
    "Tag",
    "TaskRow",
    "ThrottledMinute",
    "Timer",
    "TokenBucket",
    "Version",
    "Worker",
]
