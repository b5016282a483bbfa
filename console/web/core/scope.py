"""The scope of a request: project, region and rights of its reader.

Views get it by ``scope_of(request)`` and respond by ``render``, which adds the context of the base
template and forbids caches to store payloads.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django import shortcuts
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles import finders
from django.core.exceptions import PermissionDenied
from django.db.models import Case, Exists, OuterRef, Q, Value, When
from django.http import Http404, HttpRequest, QueryDict
from django.utils.functional import SimpleLazyObject
from structlog.contextvars import bind_contextvars

from console import access, arns
from console.config import logging_setup
from console.config.environment import REGION
from console.db import audit, clock
from console.db.branch_names import MARK
from console.db.prepared import read_models
from console.feature import Hook, hooked
from console.masking import masked_execution
from console.models import DebugEdit, Execution, Project, StateMachine
from console.samples import PROJECT as SAMPLES
from console.statuses import UNSUCCESSFUL, ExecutionStatus
from console.web.core import columns, formatting

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence

    from django.contrib.auth.models import User
    from django.db.models import QuerySet
    from django.http import HttpResponse
    from django_htmx.middleware import HtmxDetails


_SUCCESSES = Execution.objects.filter(
    state_machine=OuterRef("state_machine_id"), status=ExecutionStatus.SUCCEEDED
)
_HAS_LAST_SUCCESS = Case(
    When(status__in=UNSUCCESSFUL, then=Exists(_SUCCESSES)), default=Value(value=False)
)
"""Whether there is a success to compare a failed execution with: asked without a query more."""
_HAS_EDITS = Exists(DebugEdit.objects.filter(execution=OuterRef("pk")))
"""Whether people changed something at its breakpoints: asked without a query more."""


class HtmxRequest(HttpRequest):
    """A request with django-htmx's attributes."""

    htmx: HtmxDetails


@dataclass(frozen=True, slots=True)
class Scope:
    """The project and region that a page shows, and its reader's rights.

    ``place``: the beginning of its ARNs, up to the account. ``revealed``: number of an execution ->
    the time until which the reader sees its masked values.
    """

    principal: access.Principal
    region: str
    place: str
    revealed: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, principal: access.Principal, region: str) -> Scope:
        """Return the scope of a caller in a region."""
        partition, account = arns.partition_of(region), principal.project.account_id
        return cls(principal, region, f"arn:{partition}:states:{region}:{account}")

    @property
    def project(self) -> Project:
        """Return the reader's project."""
        return self.principal.project

    @property
    def elsewhere(self) -> bool:
        """Whether the region differs from the default, so that links must name it."""
        return self.region != settings.STATEYARD_REGION

    def arn(self, kind: str, *names: str) -> str:
        """Return the ARN of a ``stateMachine`` or ``execution`` of this scope."""
        return ":".join((self.place, kind, *names))

    @property
    def own_executions(self) -> Q:
        """Return the query condition for Standard and Express executions of the scope."""
        standard, express = (self.arn(kind, "") for kind in ("execution", "express"))
        return Q(arn__startswith=standard) | Q(arn__startswith=express)

    def may(self, action: str) -> bool:
        """Whether the reader may perform an API action such as ``StopExecution``."""
        try:
            access.authorize(self.principal, action)
        except access.Denied:
            return False
        return True

    def machine(self, name: str) -> StateMachine:
        """Return a state machine by name, with its alarm state; raise ``Http404``."""
        arn = self.arn("stateMachine", name.partition("~")[0])
        rows = read_models("machine", _machines_named, arn, self.project.pk)
        machine = next(iter(rows), None)
        if machine is None:
            raise Http404(f"There is no state machine “{name}” in {self.region}.")
        machine.project = self.project
        return machine

    def execution(self, machine: str, name: str, *, with_success: bool = False) -> Execution:
        """Return an execution, also imported or of a deleted state machine; raise ``Http404``.

        ``with_success``: also read whether there is a success to compare it with. Polls do not need
        this, which would take a tenth of their time.
        """
        imported = re.fullmatch(r".*~import-(\d{1,15})", machine, re.ASCII | re.DOTALL)
        if imported is not None:
            return self._imported(int(imported[1]), name)
        machine = machine.replace("~", "/")
        identity = self.project.pk, self.arn("execution", machine, name)
        key = ("execution", with_success)
        rows = read_models(key, partial(_executions_named, with_success), *identity)
        execution = next(iter(rows), None)
        if execution is None:
            execution = self._express(machine, name, with_success=with_success)
        if execution is None:
            raise Http404(f"“{machine}” has no execution “{name}” in {self.region}.")
        bind_contextvars(execution=execution.arn)
        return self.shown(execution)

    def _express(self, machine: str, name: str, *, with_success: bool) -> Execution | None:
        """Return an Express execution: a Map Run's child, or the latest one of a name."""
        rows = _shown_executions(self.project.pk, with_success=with_success)
        if "/" in machine:
            return rows.filter(arn=self.express_child_arn(machine, name)).first()
        express = rows.filter(state_machine_arn=self.arn("stateMachine", machine), name=name)
        return express.order_by("-pk").first()

    def express_child_arn(self, machine: str, name: str) -> str:
        """Return the ARN of an Express child of a Map Run by name, "" without one."""
        try:
            return arns.express_child_arn(self.arn("stateMachine", machine), name)
        except ValueError:
            return ""

    def shown(self, execution: Execution) -> Execution:
        """Return an execution of this project, masked for the reader."""
        execution.project = self.project
        return masked_execution.mask_execution(execution, until_ms=self.revealed.get(execution.pk))

    def own_execution(self, machine: str, name: str) -> Execution:
        """Return an execution for a change; 403 for an imported one."""
        execution = self.execution(machine, name)
        if execution.imported_ms is not None:
            raise PermissionDenied("An imported execution is read-only.")
        return execution

    def _imported(self, number: int, name: str) -> Execution:
        rows = Execution.imports.select_related("definition", "note")
        execution = rows.filter(project=self.project, pk=number, name=name).first()
        if execution is None:
            raise Http404(f"There is no imported execution “{name}”.")
        return self.shown(execution)


def _machines_named(arn: str, project: int) -> QuerySet[StateMachine]:
    machines = StateMachine.objects.select_related("definition")
    for add in hooked(Hook.MACHINE_ROWS):
        machines = add(machines)
    return machines.filter(arn=arn, project_id=project)[:1]


def _executions_named(with_success: bool, project: int, arn: str) -> QuerySet[Execution]:
    return _shown_executions(project, with_success=with_success).filter(arn=arn)[:1]


def _shown_executions(project: int, *, with_success: bool) -> QuerySet[Execution]:
    related = ("definition", "state_machine", "runrow", "note", "pause", "halted")
    rows = Execution.objects.select_related(*related).filter(project_id=project)
    rows = rows.annotate(has_edits=_HAS_EDITS)
    return rows.annotate(has_last_success=_HAS_LAST_SUCCESS) if with_success else rows


def person_of(request: HttpRequest) -> User:
    """Return the signed-in reader."""
    if not isinstance(request.user, get_user_model()):
        raise PermissionDenied("Sign in first.")
    return request.user


def administrator_of(request: HttpRequest, action: str) -> User:
    """Return the reader; raise ``PermissionDenied`` without an administrator's right."""
    user = person_of(request)
    if not access.may_administer(user, action):
        raise PermissionDenied(f"Only an administrator of the server may do this: {action}.")
    return user


def scope_of(request: HttpRequest) -> Scope:
    """Return the scope of a request; ``?region=`` selects another region."""
    scope: Scope | None = getattr(request, "page_scope", None)
    if scope is None:
        asked_region = REGION.fullmatch(request.GET.get("region", ""))
        region = asked_region[0] if asked_region else settings.STATEYARD_REGION
        scope = Scope.of(access.principal_of(request), region)
        if scope.may("RevealPayloads"):
            scope = replace(scope, revealed=_revealed_until(request))
        request.page_scope = scope  # type: ignore[attr-defined]
    return scope


REVEALED = "revealed"
"""Key of the session: execution's number -> time until which its masked values are shown."""


def _revealed_until(request: HttpRequest) -> dict[int, int]:
    now = clock.now_ms()
    until_by_number: dict[str, int] = request.session.get(REVEALED, {})
    return {int(number): until for number, until in until_by_number.items() if until > now}


class ActionNotAllowed(PermissionDenied):
    """The reader's role does not allow an action.

    ``any_of``: the actions of a page, if ``action`` names all of them because the page has several.
    """

    def __init__(self, scope: Scope, action: str, any_of: tuple[str, ...] = ()) -> None:
        super().__init__(f"Your role does not allow {action}.")
        self.scope = scope
        self.action = action
        self.any_of = any_of


def require(scope: Scope, action: str) -> None:
    """Raise a 403 if the reader's role does not allow an action."""
    if not scope.may(action):
        raise ActionNotAllowed(scope, action)


_REFUSED = (403, 404, 405)


def render(
    request: HttpRequest, template: str, context: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """Render a page for this reader."""
    scope = _reader_scope(request)
    frame = _frame_context(request, scope)
    if request.method == "GET" and status not in _REFUSED:  # a refusal comes before its view reads
        frame["address_problems"] = address_problems(request)
    reader = {} if scope is None else _reader_context(scope)
    whole = frame | reader | (context or {})
    response = shortcuts.render(request, template, whole, status=status)
    response["Cache-Control"] = "no-store"
    return response


def render_part(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Render a part of a page for this reader, without what the frame of a page needs."""
    context = _reader_context(scope_of(request)) | context
    response = shortcuts.render(request, template, context)
    response["Cache-Control"] = "no-store"
    return response


def _wait_scale() -> str:
    """Return the factor of Wait states for display, "" if they last as defined."""
    scale: float = settings.STATEYARD_WAIT_TIME_SCALE
    return "" if scale == 1 else f"{scale:g}"


def _frame_context(request: HttpRequest, scope: Scope | None) -> dict[str, Any]:
    """Return the context of the base template: settings, and the menu of projects."""
    theme = request.COOKIES.get("theme", "")
    frame: dict[str, Any] = {
        "theme": theme if theme in ("light", "dark") else "",
        "clock": "local" if request.COOKIES.get("clock") == "local" else "utc",
        "now_ms": clock.now_ms(),
        "version": _static_version(),
        "any_key": settings.STATEYARD_ACCEPT_ANY_KEY,
        "wait_scale": _wait_scale(),
        "has_passwords": settings.STATEYARD_PASSWORDS,
        "statuses": formatting.LISTED,
        "fine": formatting.StatusLabel("succeeded", "Valid"),
    }
    return frame if scope is None else frame | _project_choices(scope)


_RIGHTS = {
    "start": "StartExecution",
    "stop": "StopExecution",
    "pause": "PauseExecution",
    "resume": "ResumeExecution",
    "debug": "DebugExecution",
    "test": "TestState",
    "call": "TestUnmockedTask",
    "secrets": "RevealSecrets",
    "redrive": "RedriveExecution",
    "edit": "UpdateStateMachine",
    "delete": "DeleteStateMachine",
    "answer": "SendTaskSuccess",
    "activities": "CreateActivity",
    "members": "PutMember",
    "remove": "RemoveMember",
    "reveal": "RevealPayloads",
    "view": "PutView",
    "note": "PutNote",
    "import": "ImportExecution",
    "key": "CreateAccessKey",
}
"""Name of a right in templates -> the action that it allows."""
_NOT_IN_BRANCHES = {"members", "remove"}


class _Rights(dict[str, bool]):
    """The rights of a reader by their names in templates; each is looked up on first use."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __missing__(self, name: str) -> bool:
        """Look up a right; raise ``KeyError`` for an unknown name."""
        in_branch = MARK in self._scope.project.name
        allowed = self._scope.may(_RIGHTS[name]) and not (in_branch and name in _NOT_IN_BRANCHES)
        self[name] = allowed
        return allowed


def _reader_context(scope: Scope) -> dict[str, Any]:
    """Return the context of everything that is shown to a reader of a project."""
    return {
        "region": scope.region,
        "account": scope.project.account_id,
        "project": scope.project.name,
        "default_region": settings.STATEYARD_REGION,
        "rq": f"?region={scope.region}" if scope.elsewhere else "",
        "ra": f"&region={scope.region}" if scope.elsewhere else "",
        "masks": bool(scope.project.masked),
        "archived_ms": scope.project.archived_ms,
        "columns": SimpleLazyObject(partial(columns.chosen_columns, scope.principal.columns)),
        "may": _Rights(scope),
    }


def _project_choices(scope: Scope) -> dict[str, Any]:
    """Return the projects of the menu: the reader's; of branches only the open one.

    ``parent_project``: the project of which this one is a branch, or "". ``own_projects``: the
    projects other than the samples. ``has_branches``: the page Projects lists some.
    """
    projects = scope.principal.projects
    choices = [name for name in projects if MARK not in name or name == scope.project.name]
    parent, mark, _ = scope.project.name.partition(MARK)
    return {
        "parent_project": parent if mark else "",
        "projects": choices,
        "own_projects": [name for name in choices if name != SAMPLES],
        "has_branches": any(MARK in name for name in projects),
    }


@lru_cache
def _static_version() -> str:
    """Return a fingerprint of our static files, for browser caches."""
    folder = Path(str(finders.find("stateyard")))
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _reader_scope(request: HttpRequest) -> Scope | None:
    """Return the reader's scope; None if signed out or without a project."""
    try:
        return scope_of(request) if request.user.is_authenticated else None
    except PermissionDenied:
        return None


def actor_of(scope: Scope) -> audit.Actor:
    """Return the actor of a request for the audit trail."""
    return own_actor(scope.principal.user)


def own_actor(user: User) -> audit.Actor:
    """Return a person as the actor of this request."""
    return audit.Actor(user.get_username(), request_id=logging_setup.request_id())


_MOST_NAMED = 5
_LONGEST = 40


class RecordingQuery(QueryDict):
    """A query string that records its read parameters, and its wrong values.

    ``wrong``: name of a parameter -> its value and what a page expects.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.asked: set[str] = set()
        self.listed: set[str] = set()
        self.wrong: dict[str, tuple[str, str]] = {}
        super().__init__(*arguments, **keywords)
        self.asked.clear()  # to fill it reads it
        self.listed.clear()

    def __getitem__(self, key: str) -> Any:
        """Return the last value."""
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        """Whether a parameter was sent."""
        self.asked.add(str(key))
        return super().__contains__(key)

    def getlist(self, key: str, default: Any = None) -> Any:
        """Return all values."""
        self.asked.add(key)
        self.listed.add(key)
        return super().getlist(key, default)

    def __deepcopy__(self, memo: MutableMapping[int, Any]) -> RecordingQuery:
        """Return a copy whose reads are recorded here, too."""
        copied: RecordingQuery = super().__deepcopy__(memo)
        copied.asked, copied.listed, copied.wrong = self.asked, self.listed, self.wrong
        return copied


def record_query(request: HttpRequest) -> None:
    """Record which query parameters of a request are read."""
    query = RecordingQuery(request.META.get("QUERY_STRING", ""), encoding=request.encoding)
    request.GET = query  # type: ignore[assignment]  # Django's stubs know the immutable class


def address_problems(request: HttpRequest) -> list[str]:
    """Return a sentence for each query parameter that is ignored, repeated or invalid."""
    query = request.GET
    if not isinstance(query, RecordingQuery):
        return []
    unread: Sequence[str] = [key for key in query.keys() if key not in query.asked]  # noqa: SIM118 - "in query" is a reading
    single = query.asked - query.listed
    doubled = [key for key, values in query.lists() if len(values) > 1 and key in single]
    return [
        *(_unread_sentence(key, query.asked) for key in unread[:_MOST_NAMED]),
        *(
            f"The parameter “{key[:_LONGEST]}” stands several times in this address: "
            "its last value counts."
            for key in doubled[:_MOST_NAMED]
        ),
        *(
            f"The parameter “{key}” cannot be “{value}”; expected {expected}."
            for key, (value, expected) in query.wrong.items()
        ),
    ]


def _unread_sentence(key: str, names: set[str]) -> str:
    sentence = f"This page ignores the parameter “{key[:_LONGEST]}” of its address."
    meant = next(iter(get_close_matches(key.lower(), sorted(names), 1, 0.6)), "")
    return f"{sentence} Did you mean “{meant}”?" if meant else sentence


def choose(
    query: Mapping[str, Any],
    name: str,
    values: Iterable[str],
    default: str = "",
    *,
    also: Collection[str] = (),
) -> str:
    """Return a parameter's value if it is in ``values``, else the default; name a wrong value.

    ``also``: further accepted values, which the page does not name, such as former ones.
    """
    value, allowed = str(query.get(name, "")), [str(value) for value in values if value]
    if value in allowed or value in also:
        return value or default
    if value:
        reject_value(query, name, " or ".join(filter(None, (", ".join(allowed[:-1]), allowed[-1]))))
    return default


def reject_value(query: Mapping[str, Any], name: str, expected: str) -> None:
    """Let the page name a parameter with a wrong value, and the ``expected`` kind of value."""
    if isinstance(query, RecordingQuery):
        query.wrong[name] = (str(query.get(name, ""))[:_LONGEST], expected)
