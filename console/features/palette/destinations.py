"""Pages and actions of the palette, each with the right needed to see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Destination:
    """A page or an action. ``view``: the name of its address; ``icon``: of Lucide.

    ``action``: the right that it takes (an action of ``console.access``).
    ``keywords``: further words by which readers look for it.
    """

    title: str
    view: str
    icon: str
    keywords: str = ""
    action: str = "ViewPages"


PAGES = (
    Destination("Overview", "overview", "house", "home start failures"),
    Destination("State machines", "machines", "workflow", "workflows"),
    Destination("Executions", "executions", "list", "runs"),
    Destination("Alarms", "alarms", "bell-ring", "failure rate stuck duration"),
    Destination("Failures by kind", "failures", "layers", "errors groups"),
    Destination("Tasks", "tasks", "clipboard-check", "callbacks approvals tokens"),
    Destination("Activities", "activities", "activity", "workers"),
    Destination("Targets", "targets", "target", "functions services connections"),
    Destination("Metrics", "charts", "chart-column", "charts cost"),
    Destination("Notifications", "notifications", "bell", "rules webhooks mail"),
    Destination("Schedules", "schedules", "calendar-clock", "cron rate"),
    Destination("Bulk actions", "bulk", "list-checks", "jobs"),
    Destination("Operations", "operations", "server", "health availability workers uptime ready"),
    Destination("Team", "team", "users", "members people invitations"),
    Destination("Connect", "connect", "plug", "endpoint cli boto3 sdk shell credentials"),
    Destination("Access keys", "keys", "key-round", "credentials secret"),
    Destination("Project settings", "project-settings", "settings", "masked paths"),
    Destination("Audit", "audit", "scroll-text", "trail changes who"),
    Destination("Password", "password", "lock", "account"),
)
ACTIONS = (
    Destination("Create state machine", "new", "plus", "workflow editor", "CreateStateMachine"),
    Destination("Import an execution", "import", "upload", "history aws", "ImportExecution"),
    Destination("Compare two executions", "compare", "git-compare", "differences"),
    Destination("Invite a person", "invite", "user-plus", "member team", "CreateInvitation"),
)
