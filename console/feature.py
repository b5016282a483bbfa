"""The one door through which a feature adds to the console.

A feature is what can be left out: a package of ``console.features`` whose module ``feature`` has a
``FEATURE``. Everything else of it is loaded by the names that are in there, when it is first used.
``STATEYARD_FEATURES`` chooses the features of a server; the address of a feature that is left out
is not found, and its API actions are unknown operations. Its tables stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Hook(StrEnum):
    """Extension points of the core: each line gives the signature of the function to hook in.

    No feature, or one that has nothing to add, leaves the place as it is.
    """

    ACCOUNT_PAUSED = "account-paused"
    """``(user_id) -> bool``: a person's provider does not confirm them: their keys are refused."""
    ARN_ADDRESS = "arn-address"
    """``(scope, arn) -> str``: the address of the page of an ARN, "" if it is no ARN of theirs."""
    ARN_OBJECTS = "arn-objects"
    """``() -> dict``: kind of an ARN -> the manager of the objects of it that have a page."""
    FUNCTION_CALLED = "function-called"
    """``(execution_id, task, function, CallRecord) -> None``: a function has been called."""
    FUNCTION_LOGS = "function-logs"
    """``(execution, attempts, last) -> list``: ``ShownCall`` of its tasks, the oldest first.

    ``attempts``: task -> number of its attempt. ``last``: the id of the step's last event.
    """
    MACHINE_ALARMS = "machine-alarms"
    """``(machine) -> list``: its newest alarm in alarm, whose ``total`` counts all."""
    MACHINE_ROWS = "machine-rows"
    """``(QuerySet) -> QuerySet``: machines with columns for ``MACHINE_ALARMS``."""
    LOST_PASSWORD = "lost-password"
    """``() -> bool``: people who forgot their password get a link to ``password-reset`` by mail."""
    METRICS_PORT = "metrics-port"
    """``(port, *, whole) -> int``: serve this process's metrics there; OSError if it is taken.

    ``whole``: with what the database says of the server and its projects.
    """
    MEMBER_REMOVED = "member-removed"
    """``(project, username, actor) -> None``: in the transaction that removes, or adds them."""
    NEEDED_SINCE = "needed-since"
    """``() -> int``: epoch milliseconds; executions that ended later may not be pruned yet."""
    EXECUTION_PAGE = "execution-page"
    """``(execution, transitions) -> dict``: context for the page of an execution."""
    EXECUTION_SUMMARIES = "execution-summaries"
    """``(project, numbers) -> dict``: execution number -> its summary in a line, where it has one.

    As every reader may see it.
    """
    FRESH_SUMMARY = "fresh-summary"
    """``(execution) -> str``: the summary of an execution as it is now, "" without one."""
    MACHINE_HINT = "machine-hint"
    """``(machine) -> str``: what is wrong with a setting of a state machine, "" if nothing."""
    TAG_PROBLEM = "tag-problem"
    """``(key, value) -> str``: why a page refuses a tag of a state machine, "" if it does not."""
    PAGE_REQUEST = "page-request"
    """``(request) -> HttpResponse | None``: somebody who is signed in asks for a page.

    An answer takes the place of the page's.
    """
    PROJECT_AUDIT_NEEDED = "project-audit-needed"
    """``(project_id) -> bool``: audit rows of a project to be deleted have to stay for a while."""
    PROJECT_BRANCHES = "project-branches"
    """``(memberships) -> dict``: project id -> ``ShownBranch`` of its branches, for the reader."""
    PROJECT_FUNCTIONS = "project-functions"
    """``(project) -> dict``: functions that its owners registered, as ``functions.json`` has them.

    ``project``: its name.
    """
    PROJECT_TARGETS = "project-targets"
    """``(project) -> dict``: targets that its owners set, as its section of ``targets.json``."""
    PROVIDER_ACCOUNTS = "provider-accounts"
    """``(user_ids) -> set``: of these, the ids of accounts that belong to a person elsewhere.

    A provider signs them in: they have no password here, and nobody else makes keys of theirs.
    """
    ACCOUNT_CLOSED = "account-closed"
    """``(user) -> None``: in the transaction that closes an account without a project."""
    MEMBERSHIP_ROWS = "membership-rows"
    """``(QuerySet) -> QuerySet``: memberships with a column ``needs_second_factor``."""
    MEMBERS_PAGE = "members-page"
    """``(scope) -> dict``: context for the page of members."""
    START_INPUTS = "start-inputs"
    """``(machine) -> object``: inputs to start it with: ``names``, ``shown(name)``: the text.

    ``filled(name, text)``: an edited text with its hidden values.
    """
    SECOND_STEP = "second-step"
    """``(request, user, after, by) -> HttpResponse | None``: somebody may begin a session.

    An answer asks for more first. ``after`` and ``by``: as for ``start_session`` of the pages.
    """
    SERVER_CHECKS = "server-checks"
    """``() -> list``: name, verdict, text and remedy of further checks of the doctor."""
    SERVER_GAUGES = "server-gauges"
    """``() -> list``: name, meaning and value of further metrics of the server."""
    SETTING_SECTIONS = "setting-sections"
    """``() -> tuple``: ``SettingSection`` that the export of a project's settings has besides."""
    SIGN_IN_WAYS = "sign-in-ways"
    """``() -> list``: name and address of each way to sign in beside the password."""
    OVERVIEW = "overview"
    """``(scope, query) -> dict``: context that the overview reads once."""
    OVERVIEW_LIVE = "overview-live"
    """``(scope, most) -> dict``: context of the overview's poll; ``seen``: what it depends on."""
    TASK_PAGE = "task-page"
    """``(scope, question) -> dict``: context for the page of a task, which asks that."""
    WORKER_STOPPED = "worker-stopped"
    """``(seconds) -> None``: write what waits in memory, within so many seconds."""


@dataclass(frozen=True, slots=True)
class PeriodicJob:
    """Work that the leading worker does again and again: one a server, however many workers."""

    name: str
    run: Callable[[], object]
    every_s: float = 60.0


class Background(Protocol):
    """Work of a worker with threads of its own; one object a worker."""

    def sweep(self, work: Any) -> None:
        """Find in the rows what there is to do. Called by the leader, often; returns at once.

        ``work``: the ``OpenWork`` of ``console.store``, the kinds of work that there may be.
        """

    def wake(self) -> None:
        """Look at once: there are new events. Returns at once."""

    def stop(self, seconds: float) -> None:
        """Take no more, and wait so long for what is under way."""


@dataclass(frozen=True, slots=True)
class Feature:
    """Declaration of a feature. Dotted paths are imported on first use.

    ``urls``: the module of its addresses. ``pages``: the rights that these take, as ``PAGES`` of
    ``console.web.core.rights`` has them. ``rights``: role -> the actions that take it at least.
    ``parameters``: address that programs read -> its query parameters; others are refused.
    ``operations``: botocore's name of a service -> the module
    whose ``HANDLERS`` answers its actions. ``jobs``: the module whose ``JOBS`` are ``PeriodicJob``.
    ``background``: a class of ``Background``. ``hooks``: place of the core -> function.
    ``needs``: the features without which this one does not work.
    """

    name: str
    urls: str = ""
    pages: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    rights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    operations: Mapping[str, str] = field(default_factory=dict)
    jobs: str = ""
    background: str = ""
    hooks: Mapping[Hook, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


@cache
def chosen_features() -> tuple[Feature, ...]:
    """Return the features of this server, in the order of ``console.features.NAMES``."""
    names = settings.STATEYARD_FEATURES
    return tuple(import_module(f"console.features.{name}.feature").FEATURE for name in names)


def has_feature(name: str) -> bool:
    """Tell whether this server has a feature."""
    return name in settings.STATEYARD_FEATURES


def missing_need() -> str:
    """Return an error naming a feature and its missing dependency; "" if all are met."""
    for feature in chosen_features():
        for name in feature.needs:
            if not has_feature(name):
                return f"STATEYARD_FEATURES: {feature.name} needs {name}, which is left out"
    return ""


@cache
def hooked(hook: Hook) -> tuple[Callable[..., Any], ...]:
    """Return the functions of this server's features for a place of the core."""
    return tuple(
        import_string(feature.hooks[hook]) for feature in chosen_features() if hook in feature.hooks
    )
