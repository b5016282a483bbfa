"""The tables of the database.

They decide nothing, and only ``console.store`` writes execution tables.

Every execution-owned table leads its key with the execution's id, so PostgreSQL can be partitioned
or distributed by execution. Times are epoch milliseconds (``..._ms``). Payloads are text: what came
in goes out.
"""

from __future__ import annotations

from console.features.alarms.models import Alarm, AlarmChange
from console.features.bulk.models import BulkItem, BulkJob
from console.features.logs.function_log_models import FunctionLog
from console.features.logs.models import LogGroup, LogRoute
from console.features.metrics.models import (
    MetricMinute,
    MetricTotal,
    Price,
)
from console.models.events import (
    Delivery,
    EventRule,
    EventTarget,
    OutboxEvent,
    ScheduleGroup,
    StartLink,
)
from console.models.executions import (
    Execution,
    HistoryEvent,
    InboxMessage,
    MapItem,
    MapRun,
    RunRow,
    RunValue,
    TaskRow,
    Timer,
)
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
from console.models.quotas import ThrottledMinute, TokenBucket
from console.models.server import (
    ReadinessMinute,
    ServerFact,
    Worker,
)

__all__ = [
    "AccessKey",
    "Activity",
    "Alarm",
    "AlarmChange",
    "Alias",
    "AuditEntry",
    "BulkItem",
    "BulkJob",
    "Definition",
    "DefinitionDraft",
    "Delivery",
    "EventRule",
    "EventTarget",
    "Execution",
    "ExecutionNote",
    "FunctionLog",
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
    "MetricMinute",
    "MetricTotal",
    "OutboxEvent",
    "Price",
    "Project",
    "ReadinessMinute",
    "Role",
    "RunRow",
    "RunValue",
    "SavedView",
    "ScheduleGroup",
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
