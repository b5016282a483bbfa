"""The interface between the core of the console and its features.

A feature is a package of ``console.features`` that a server can do without. Its module ``feature``
declares a ``FEATURE``: its URLs, rights, API operations, jobs, and functions for the core's
extension points (``Hook``). Other modules of the feature are imported on first use. A server has
the features in ``STATEYARD_FEATURES``. For a disabled feature, pages answer 404, API actions are
unknown operations, and commands end with a sentence; its tables stay.

Commands that call a server import this module without Django.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from console.features import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


class Hook(StrEnum):
    """Extension points of the core. The docstring of each begins with the function's signature.

    The core calls ``hooked(hook)`` and does without the extension if no feature has a function for
    it.
    """

    ACCOUNT_PAUSED = "account-paused"
    """``(user_id) -> bool``: refuse this person's keys: their provider does not confirm them."""
    ARN_ADDRESS = "arn-address"
    """``(scope, arn) -> str``: the URL of an ARN's page, "" if the ARN is not the feature's."""
    ARN_OBJECTS = "arn-objects"
    """``() -> dict``: kind of ARN -> manager of the objects that have a page."""
    BEFORE_PRUNING = "before-pruning"
    """``() -> None``: called before the command ``prune`` deletes executions."""
    FUNCTION_CALLED = "function-called"
    """``(execution_id, task, function, CallRecord) -> None``: called after a function call."""
    FUNCTION_LOGS = "function-logs"
    """``(execution, attempts, last) -> list``: ``ShownCall`` of its tasks, the oldest first.

    ``attempts``: task -> number of its attempt. ``last``: the id of the step's last event.
    """
    MACHINE_ALARMS = "machine-alarms"
    """``(machine) -> list``: its newest alarm in ALARM, whose ``total`` counts all."""
    MACHINE_ROWS = "machine-rows"
    """``(QuerySet) -> QuerySet``: machines with columns for ``MACHINE_ALARMS``."""
    LOST_PASSWORD = "lost-password"
    """``() -> bool``: whether ``password-reset`` sends people a link for a new password by mail."""
    METRICS_PORT = "metrics-port"
    """``(port, *, whole) -> int``: serve this process's metrics at a port; OSError if it is taken.

    ``whole``: also the figures of the server and its projects from the database.
    """
    MEMBER_REMOVED = "member-removed"
    """``(project, username, actor) -> None``: called in the transaction that removes or adds them.
    """
    NEEDED_SINCE = "needed-since"
    """``() -> int``: epoch milliseconds; executions that ended later may not be pruned yet."""
    EXECUTION_PAGE = "execution-page"
    """``(execution, transitions) -> dict``: context for the page of an execution."""
    EXECUTION_LIST = "execution-list"
    """``(scope, machine, filters, query) -> dict``: context for a list of executions.

    ``machine``: None for the list of all.
    """
    EXECUTION_SUMMARIES = "execution-summaries"
    """``(project, numbers) -> dict``: execution number -> summary in one line, for summarised ones.

    Masked as for a reader without rights.
    """
    FRESH_SUMMARY = "fresh-summary"
    """``(execution) -> str``: the current summary of an execution, "" without one."""
    MACHINE_HINT = "machine-hint"
    """``(machine) -> str``: a problem of a state machine's settings, "" if there is none."""
    TAG_PROBLEM = "tag-problem"
    """``(key, value) -> str``: why a page rejects a tag of a state machine, "" if it is valid."""
    PAGE_REQUEST = "page-request"
    """``(request) -> HttpResponse | None``: called for each page request of a signed-in person.

    A response replaces the page.
    """
    PROJECT_AUDIT_NEEDED = "project-audit-needed"
    """``(project_id) -> bool``: whether audit rows of a project being deleted must stay for now."""
    PROJECT_BRANCHES = "project-branches"
    """``(memberships) -> dict``: project id -> ``ShownBranch`` of its branches, for the reader."""
    PROJECT_FUNCTIONS = "project-functions"
    """``(project) -> dict``: functions that its owners registered, as in ``functions.json``.

    ``project``: its name.
    """
    PROJECT_TARGETS = "project-targets"
    """``(project) -> dict``: targets that its owners set, as a section of ``targets.json``."""
    PROVIDER_ACCOUNTS = "provider-accounts"
    """``(user_ids) -> set``: the ids among these of accounts that a provider signs in.

    They have no password here, and nobody else creates keys for them.
    """
    ACCOUNT_CLOSED = "account-closed"
    """``(user) -> None``: called in the transaction that closes an account without a project."""
    MEMBERSHIP_ROWS = "membership-rows"
    """``(QuerySet) -> QuerySet``: memberships with a column ``needs_second_factor``."""
    MEMBERS_PAGE = "members-page"
    """``(scope) -> dict``: context for the page of members."""
    STEP_FLOW = "step-flow"
    """``(execution, trace, panel) -> object``: the data flow of the visit in the panel, or None."""
    START_INPUTS = "start-inputs"
    """``(machine) -> object``: inputs offered in its start form: ``names``, and ``shown(name)``.

    ``shown(name)``: the masked text; ``filled(name, text)``: an edited text with its real values.
    """
    SECOND_STEP = "second-step"
    """``(request, user, after, by) -> HttpResponse | None``: called before a session begins.

    A response asks for a further proof first. ``after``, ``by``: as for
    ``login_views.start_session``.
    """
    PYTEST_PLUGIN = "pytest-plugin"
    """``() -> object``: a plugin of pytest for the tests of other projects."""
    SERVER_CHECKS = "server-checks"
    """``() -> list``: name, verdict, text and remedy of each further check of the doctor."""
    SERVER_GAUGES = "server-gauges"
    """``() -> list``: name, meaning and value of each further metric of the server."""
    SERVICE_JOBS = "service-jobs"
    """``() -> ServiceJobs``: integrations of services that run jobs; see ``integrations.jobs``."""
    SETTING_SECTIONS = "setting-sections"
    """``() -> tuple``: each ``SettingSection`` to add to the export of a project's settings."""
    SIGN_IN_WAYS = "sign-in-ways"
    """``() -> list``: name and URL of each way to sign in besides the password."""
    OVERVIEW = "overview"
    """``(scope, query) -> dict``: template context of the overview when it is opened."""
    OVERVIEW_CHANGED = "overview-changed"
    """``(scope, context) -> dict``: context of the overview's lists, opened or changed.

    ``context``: of its other lists; ``tally``: numbers of executions.
    """
    OVERVIEW_MACHINES = "overview-machines"
    """``(scope, MachinePage) -> dict``: context made of the overview's list of state machines."""
    OVERVIEW_LIVE = "overview-live"
    """``(scope, most) -> dict``: context of each poll of the overview; ``seen``: its stamp."""
    DEFINITION_PAGE = "definition-page"
    """``(machine) -> dict``: context for the page of its definition."""
    DEPLOYMENT_CHECK = "deployment-check"
    """``(options, connection, project) -> None``: raise ``DeploymentRefused`` before ``deploy``."""
    FILE_OPTIONS = "file-options"
    """``(parser) -> None``: add options to the commands ``lint`` and ``deploy``."""
    LINT_CHECK = "lint-check"
    """``(options, parameters) -> bool``: a further check of ``lint``; whether it has errors."""
    LIST_REDIRECT = "list-redirect"
    """``(scope, request, machine) -> str``: the URL that a list of executions opens instead, or "".
    """
    LISTED_ROLE = "listed-role"
    """``(name, documents, gaps) -> RoleSource``: a role made of the policies in a project file."""
    TEMPLATE_ROLE = "template-role"
    """``(context, logical_id, said, *, traced) -> RoleSource | None``: the role of a state machine.

    ``context``: template, account, parameters and place. ``said``: its Role in the template.
    """
    TERRAFORM_ROLE = "terraform-role"
    """``(resources, references, place, address, values) -> RoleSource | None``: the role of a state

    machine in Terraform's JSON.
    """
    REPLAY_POINT = "replay-point"
    """``(execution) -> object``: where a replay with the current definition begins, or None."""
    ROLE_ENFORCED = "role-enforced"
    """``(project, machine) -> bool``: whether Tasks of a state machine need permissions."""
    TASK_REFUSAL = "task-refusal"
    """``(TaskAttempt) -> str``: why a Task may not make its call, "" if it may."""
    TASK_PAGE = "task-page"
    """``(scope, question) -> dict``: template context of a task's page; ``question``: shown there.
    """
    TIMELINE = "timeline"
    """``(execution, trace, rows, query, past_ms) -> object``: rows of steps as bars over time.

    ``past_ms``: the displayed time, None for now. Its ``durations``: row id -> an object whose
    ``paint`` has the values with which the script repaints the cell.
    """
    WORKER_STOPPED = "worker-stopped"
    """``(seconds) -> None``: write what is buffered in memory, within this time."""


@dataclass(frozen=True, slots=True)
class PeriodicJob:
    """Work that the leading worker repeats: once per server, not per worker."""

    name: str
    run: Callable[[], object]
    every_s: float = 60.0
    first: Callable[[], object] | None = None
    """Runs instead of ``run`` when this process leads for the first time."""
    pending: str = ""
    """An SQL condition: the job runs only while it is true; "" for always. The sweep evaluates all

    conditions in one statement.
    """


class Background(Protocol):
    """Base of a feature's background work with its own threads; one object per worker."""

    def sweep(self, work: Any) -> None:
        """Look for due work in the rows. Called often, by the leader; returns at once.

        ``work``: the kinds of work that may exist (``OpenWork`` of ``console.store``).
        """

    def wake(self) -> None:
        """Look for work now, because there are new events. Returns at once."""

    def stop(self, seconds: float) -> None:
        """Accept no more work, and wait up to ``seconds`` for work in progress."""


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A command of ``stateyard``: its group in the list of commands, and its summary in one line.

    ``module``: the module of a client command, with ``SUMMARY``, ``add_arguments`` and
    ``run_command``; "" for a command of Django in the feature's ``management/commands``.
    """

    group: str
    summary: str
    module: str = ""


@dataclass(frozen=True, slots=True)
class Feature:
    """Declaration of a feature. Dotted paths are imported on first use.

    ``urls``: the module of its URLs. ``pages``: the rights that they need, as in
    ``console.web.core.rights.PAGES``. ``rights``: role -> the actions that need at least this role.
    ``parameters``: URL for programs -> its query parameters; others are refused. ``operations``:
    botocore's name of a service -> the module whose ``HANDLERS`` answer its actions. ``jobs``: the
    module whose ``JOBS`` are ``PeriodicJob`` objects. ``background``: a subclass of ``Background``.
    ``hooks``: extension point -> function. ``commands``: name -> command of ``stateyard``.
    ``needs``: other features that it requires.
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
    commands: Mapping[str, Subcommand] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


def declared_features() -> Iterator[Feature]:
    """Yield all features, also disabled ones, and import each only when it is reached."""
    return map(_declaration, NAMES)


def _declaration(name: str) -> Feature:
    feature: Feature = import_module(f"console.features.{name}.feature").FEATURE
    return feature


@cache
def chosen_features() -> tuple[Feature, ...]:
    """Return the features of this server, in the order of ``console.features.NAMES``."""
    return tuple(map(_declaration, chosen_names()))


def chosen_names() -> tuple[str, ...]:
    """Return the names of the features of this server; raise ``SettingError`` for an unknown one.

    A client command has no settings: it reads the variable.
    """
    django_conf: Any = sys.modules.get("django.conf")
    if django_conf is not None and django_conf.settings.configured:
        # the pytest plugin is loaded in tests of other Django projects, too
        names: tuple[str, ...] | None = getattr(django_conf.settings, "STATEYARD_FEATURES", None)
        if names is not None:
            return names
    if not os.environ.get("STATEYARD_FEATURES"):
        return NAMES
    from console.config import environment

    return environment.read_features("STATEYARD_FEATURES", NAMES)


def has_feature(name: str) -> bool:
    """Return whether this server has a feature."""
    return name in chosen_names()


def find_command(name: str) -> tuple[Feature, Subcommand] | None:
    """Return the feature that has a command of ``stateyard``, chosen or not, and the command."""
    for feature in declared_features():
        if name in feature.commands:
            return feature, feature.commands[name]
    return None


def missing_need() -> str:
    """Return an error naming a feature and its missing dependency; "" if all are met."""
    for feature in chosen_features():
        for name in feature.needs:
            if not has_feature(name):
                return f"STATEYARD_FEATURES: {feature.name} needs {name}, which is left out"
    return ""


@cache
def hooked(hook: Hook) -> tuple[Callable[..., Any], ...]:
    """Return the functions of this server's features for an extension point."""
    return tuple(
        _import_name(feature.hooks[hook]) for feature in chosen_features() if hook in feature.hooks
    )


def _import_name(path: str) -> Callable[..., Any]:
    """Return the function at a dotted path."""
    module, _, name = path.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


# -- views -----------------------------------------------------------------------------------------

_importing = RLock()
"""Serializes imports: two threads in circular imports would see half of a module."""


class ViewModule:
    """A module of views, by its dotted path, for ``urls.py``. Its attributes are ``View``."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> View:
        """Return a view function of the module, for ``path``."""
        return View(self._path, name)


class View:
    """A view function that is imported on first use.

    A server starts without the modules of its pages; ``console.server.serving`` imports them later.
    """

    def __init__(self, module: str, name: str) -> None:
        self.__module__, self.__name__, self.__qualname__ = module, name, name

    @cached_property
    def function(self) -> Callable[..., HttpResponseBase]:
        """The view function. Raise ``ImportError`` or ``AttributeError`` if it does not exist."""
        with _importing:
            module = import_module(self.__module__)
        function: Callable[..., HttpResponseBase] = getattr(module, self.__name__)
        return function

    def __call__(self, request: HttpRequest, *parts: Any, **named: Any) -> HttpResponseBase:
        """Return the response of the view."""
        return self.function(request, *parts, **named)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the view function, such as ``csrf_exempt``."""
        if name == "view_class":  # Django asks every address for it; no view here has it
            raise AttributeError(name)
        if name == "function":  # the property raised the error: the module has no such view
            raise AttributeError(f"{self.__module__} has no view {self.__name__}")
        return getattr(self.function, name)
