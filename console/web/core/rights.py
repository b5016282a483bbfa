"""Check the rights of every page request before its view runs.

``PAGES`` maps each URL name and method to actions of ``console.access``. A page missing in the
table is refused for everybody, so that a forgotten entry fails closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.utils.deprecation import MiddlewareMixin

from console import access
from console.feature import chosen_features
from console.web.core.error_views import method_not_allowed
from console.web.core.query_parameters import refuse_parameters
from console.web.core.scope import ActionNotAllowed, address_problems, record_query, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest

log = structlog.get_logger(__name__)

ANYBODY = "anybody"
"""No session is needed: the view has a rule of its own, or shows nothing of a project."""
SIGNED_IN = "signed in"
"""A person is needed, but no project."""
VIEW = "ViewPages"

_EDIT = "UpdateStateMachine"
_START = "StartExecution"

PAGES: dict[str, dict[str, tuple[str, ...]]] = {
    # -- anybody
    "login": {"GET": (ANYBODY,), "POST": (ANYBODY,)},
    "login-link": {"GET": (ANYBODY,), "POST": (ANYBODY,)},
    "healthz": {"GET": (ANYBODY,)},
    "readyz": {"GET": (ANYBODY,)},
    "reset": {"POST": (ANYBODY,)},  # not there unless `up --allow-reset` says so
    # -- any person who is signed in
    "logout": {"POST": (SIGNED_IN,)},
    "password": {"GET": (SIGNED_IN,), "POST": (SIGNED_IN,)},
    "preferences": {"POST": (SIGNED_IN,)},
    # -- reading
    **{
        name: {"GET": (VIEW,)}
        for name in (
            "arn",
            "connect",
            "definition",
            "delta",
            "download",
            "event",
            "event-payload",
            "events",
            "execution",
            "executions",
            "executions-updates",
            "machine",
            "machine-updates",
            "machines",
            "moment",
            "overview",
            "overview-updates",
            "payload",
            "ran-definition",
            "ran-text",
            "step",
        )
    },
    # -- executions
    "start": {"GET": (_START,), "POST": (_START,)},
    "stop": {"GET": ("StopExecution",), "POST": ("StopExecution",)},
    "redrive": {"GET": ("RedriveExecution",), "POST": ("RedriveExecution",)},
    "reveal": {"POST": ("RevealPayloads",)},
    "note": {"POST": ("PutNote",)},
    "remark": {"POST": ("PutNote",)},  # the old address of the note
    # -- machines
    "sample-start": {"POST": ("CreateStateMachine",)},
    "delete": {"GET": ("DeleteStateMachine",), "POST": ("DeleteStateMachine",)},
    "machine-settings": {"GET": (VIEW,), "POST": (_EDIT, "TagResource", "UntagResource")},
    # -- the project
    "project-settings": {"GET": (VIEW,), "POST": ("PutMaskedPaths",)},
    "columns": {"POST": ("PutColumns",)},
    # -- features
    **{
        name: dict(methods)
        for feature in chosen_features()
        for name, methods in feature.pages.items()
    },
}
"""Name of the address -> method -> actions of which the reader needs one.

If a page has several actions, the form names one of them, and the view requires the right for it.
"""


_OF_ADMINISTRATORS = {"operations": "ViewOperations"}
"""Pages that administrators of the server see without a project: name -> their right to it."""


class RightsMiddleware(MiddlewareMixin):
    """Refuses every request that the table does not allow."""

    def process_request(self, request: HttpRequest) -> None:
        """Start to record which query parameters are read."""
        record_query(request)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        """Return None if the view may run; raise ``PermissionDenied``."""
        match = request.resolver_match
        name = (match.url_name or "") if match else ""
        methods = PAGES.get(name)
        if methods is None:
            log.error("a page is in no table of rights", path=request.path)
            raise PermissionDenied("The table of rights has no entry for this page.")
        method = "GET" if request.method == "HEAD" else request.method or ""
        if method not in methods:
            return method_not_allowed(request, methods)
        _require_one_of(request, methods[method], name)
        return refuse_parameters(request, name)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Refuse a file whose URL has a parameter without its effect."""
        attached = response.headers.get("Content-Disposition", "").startswith("attachment")
        problems = address_problems(request) if attached and request.method == "GET" else []
        if not problems:
            return response
        response.close()
        words = " ".join(problems)
        return HttpResponse(f"{words}\n", status=400, content_type="text/plain; charset=utf-8")


def _require_one_of(request: HttpRequest, actions: tuple[str, ...], page: str) -> None:
    if ANYBODY in actions:
        return
    if not request.user.is_authenticated:  # a view that asks for no login, but is not ANYBODY's
        raise PermissionDenied("Sign in first.")
    if SIGNED_IN in actions:
        return
    as_administrator = (*actions, _OF_ADMINISTRATORS.get(page, ""))
    if any(access.may_administer(request.user, action) for action in as_administrator):
        return
    scope = scope_of(request)
    if not any(scope.may(action) for action in actions):
        if len(actions) == 1:
            raise ActionNotAllowed(scope, actions[0])
        # only the view would know which of the actions the form names, and it does not run
        raise ActionNotAllowed(scope, f"any act of the page {page}", actions)
