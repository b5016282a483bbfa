"""What is stored?  Tables only.

They decide nothing, and only ``console.store`` writes execution tables.

Every execution-owned table leads its key with the execution's id, so PostgreSQL can be partitioned
or distributed by execution. Times are epoch milliseconds (``..._ms``). Payloads are text: what came
in goes out.
"""

from __future__ import annotations

from console.models.bulk import BulkItem, BulkJob
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
    StateMachine,
    Tag,
    Version,
)
from console.models.metrics import (
    MetricMinute,
    MetricTotal,
    Price,
)
from console.models.people import (
    AccessKey,
    AuditEntry,
    LoginLink,
    Membership,
    Project,
    Role,
)
from console.models.quotas import ThrottledMinute, TokenBucket
from console.models.server import (
    ServerFact,
)

__all__ = [
    "AccessKey",
    "Activity",
    "Alias",
    "AuditEntry",
    "BulkItem",
    "BulkJob",
    "Definition",
    "Execution",
    "HistoryEvent",
    "InboxMessage",
    "LoginLink",
    "MapItem",
    "MapRun",
    "Membership",
    "MetricMinute",
    "MetricTotal",
    "Price",
    "Project",
    "Role",
    "RunRow",
    "RunValue",
    "ServerFact",
    "StateMachine",
    "Tag",
    "TaskRow",
    "ThrottledMinute",
    "Timer",
    "TokenBucket",
    "Version",
]
