"""Views of a state machine: list, page, definition, exports, sample, settings."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

import engine
from console import arns
from console.errors import ServiceError, ValidationException
from console.feature import Hook, hooked
from console.integrations import mocks
from console.integrations.targets import MachineKey
from console.samples import MACHINES, PROJECT, sample_role
from console.statuses import ExecutionStatus, MachineStatus
from console.store.executions.start import start_execution
from console.store.machines import drafts, log_groups, machines, revisions, tags
from console.store.machines import machines as store
from console.store.state import pause
from console.web.core import formatting, forms
from console.web.core.addresses import page_address
from console.web.core.scope import Scope, actor_of, choose, render, require, scope_of
from console.web.graph import definition_text, svg
from console.web.graph.graph_view import GraphView
from console.web.machines.forms import (
    LEVELS,
    LoggingForm,
    RemoveTagForm,
    RoleForm,
    TagForm,
    TracingForm,
)
from console.web.search import lists, scan
from console.web.search.filters import ExecutionFilters
from console.web.search.list_views import list_redirect, render_execution_list, render_list_changes

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.models import DefinitionDraft, StateMachine
    from console.web.core.forms import FormActions
    from console.web.core.scope import HtmxRequest


MOST_BESIDE_A_LIST = 150
"""The maximum number of states of a graph next to a list."""
WIDEST_BESIDE_A_LIST = 480
"""Pixels: groups of a wider graph are folded, so that names stay readable."""
LEAST_FOLDED = 4
"""The number of boxes below which a folded graph is useless: the groups stay open."""


@require_safe
def machine_list(request: HttpRequest) -> HttpResponse:
    """Show ``/machines/``: all state machines by name."""
    scope = scope_of(request)
    search, after = request.GET.get("q", "")[:80], request.GET.get("after", "")[:80]
    tag = request.GET.get("tag", "")[:400]
    sort = choose(request.GET, "sort", lists.SORTS, "name")
    # list samples apart from the project's own state machines
    hides_samples = False if scope.project.name != PROJECT else None
    context: dict[str, Any] = {"section": "machines", "search": search, "after": after}
    context |= {
        "tag": tag,
        "sort": sort,
        "sorts": _next_sorts(sort),
        "draft": open_draft(scope, None),
    }
    if hides_samples is not None and not after:
        own, samples = lists.list_beside_samples(scope, search=search, sort=sort, tag=tag)
        context |= {"machines": own, "samples": samples}
    else:
        context["machines"] = lists.list_machines(
            scope,
            search=search,
            after=after,
            sort=sort,
            samples=hides_samples,
            recent=True,
            tag=tag,
        )
    return render(request, "machines/machine_list.html", context)


def _next_sorts(sort: str) -> dict[str, str]:
    """Return the next sort key of each heading: times start descending, a second click reverses."""
    first = {"name": "name", "started": "-started", "created": "-created"}
    turned = {"name": "-name", "started": "started", "created": "created"}
    return {key: turned[key] if sort == order else order for key, order in first.items()}


@require_safe
def machine_page(request: HtmxRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/``: its executions."""
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    if address := list_redirect(request, machine):
        return redirect(address)
    filters = ExecutionFilters.of(request.GET)
    context = machine_context(machine) | {
        "tab": "executions",
        "draft": open_draft(scope, machine),
        "executions": scan.find_executions(scope, machine, filters),
        "updates_url": reverse("machine-updates", args=[machine.name]),
        "with_machine": False,
        "input": suggested_input(machine.name),
        "has_paused": pause.has_paused_executions(machine),
        "machine_hints": [hint for find in hooked(Hook.MACHINE_HINT) if (hint := find(machine))],
    }
    return render_execution_list(
        request, "machines/page.html", context | graph_beside(request, machine)
    )


def graph_beside(request: HttpRequest, machine: StateMachine) -> dict[str, Any]:
    """Return the graph beside a list, {} if it is too large.

    It runs from top to bottom and shows names only. Each state links to its place in the
    definition.
    """
    text, view = machine.definition.text, GraphView(plain=True, compact=True)
    context = definition_text.picture_context(text, machine.type, view)
    if context["picture"] is None or len(context["graph"].nodes) > MOST_BESIDE_A_LIST:
        return {}
    if context["picture"].width > WIDEST_BESIDE_A_LIST:
        folded = svg.definition_picture(text, machine.type, replace(view, folds=True))
        context |= {"picture": folded} if len(folded.boxes) >= LEAST_FOLDED else {}
    definition = reverse("definition", args=[machine.name])
    jump = f"{definition}?{urlencode({'region': scope_of(request).region, 'state': ''})}"
    return {key: context[key] for key in ("picture", "graph_view")} | {"jump": jump}


@require_safe
def machine_execution_changes(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer a poll of a state machine's list of executions."""
    scope = scope_of(request)
    return render_list_changes(request, scope, scope.machine(machine_name))


@require_safe
def definition_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/definition/``: text and graph.

    ``?execution=``: the failed execution that the reader changed the definition to fix.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    context = machine_context(machine) | {"tab": "definition"}
    context |= definition_text.definition_context(
        request, machine.definition.text, machine.type, scope.region
    )
    saves = revisions.list_revisions(machine, limit=1)
    context |= {
        "revision": saves[0].number if saves else None,
        "draft": open_draft(scope, machine),
    }
    for add in hooked(Hook.DEFINITION_PAGE):
        context |= add(machine)
    if failed := request.GET.get("execution", ""):
        execution = scope.own_execution(machine_name, failed)
        for point_of in hooked(Hook.REPLAY_POINT):
            context |= {"failed_execution": execution, "replay_point": point_of(execution)}
    return render(request, "machines/definition.html", context)


@require_http_methods(["GET", "POST"])
def delete_machine(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Ask once, then delete; running executions are aborted at their next transition."""
    scope = scope_of(request)
    require(scope, "DeleteStateMachine")
    machine = scope.machine(machine_name)
    if request.method == "GET":
        running = machine.execution_set.filter(status=ExecutionStatus.RUNNING).count()
        return render(
            request, "machines/delete.html", machine_context(machine) | {"running": running}
        )
    store.delete_machine(scope.project, machine.arn, actor_of(scope))
    if (
        type(machine).objects.filter(pk=machine.pk).exists()
    ):  # it goes when its last execution has ended
        return redirect(page_address(scope, "machine", machine.name))
    messages.success(request, f"{machine.name} was deleted.")
    return redirect(page_address(scope, "machines"))


def open_draft(scope: Scope, machine: StateMachine | None) -> DefinitionDraft | None:
    """Return the reader's unsaved text in the editor, None without one.

    ``machine``: None for one that is not created yet.
    """
    if not scope.may("UpdateStateMachine" if machine else "CreateStateMachine"):
        return None
    if machine is not None and machine.status != MachineStatus.ACTIVE:
        return None
    arn = machine.arn if machine else ""
    draft = drafts.find_draft(scope.project, scope.principal.user, arn)
    if draft is None or machine is None:
        return draft
    return None if _differ_in_space_alone(draft.text, machine.definition.text) else draft


def _differ_in_space_alone(text: str, other: str) -> bool:
    """Whether two definitions differ only in whitespace: the editor reformats one-line texts."""
    try:
        return formatting.is_equal_but_for_spaces(text, other)
    except (ValueError, RecursionError):  # half of a definition
        return False


def machine_context(machine: StateMachine) -> dict[str, Any]:
    """Return the shared context of a state machine's pages."""
    text = machine.definition.text
    try:
        parsed = engine.parse_stored(text, machine.type)
        comment, limit = parsed.comment, parsed.timeout_seconds
    except engine.DefinitionError:  # stored by a version that checked less
        comment, limit = None, None
    sample = next((each for each in MACHINES if each.name == machine.name), None)
    if sample is not None and sample.definition == text:
        comment = sample.description
    return {
        "section": "machines",
        "machine": machine,
        "comment": comment,
        "machine_limit": limit,
        "cases": mocks.test_cases(MachineKey(machine.project.name, machine.name)),
    }


def suggested_input(name: str) -> str:
    """Return a sample's input, else an empty object."""
    return next((sample.input for sample in MACHINES if sample.name == name), "{}")


@require_safe
def definition_json(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Return the definition's text, unchanged."""
    machine = scope_of(request).machine(machine_name)
    return _file_response(machine.definition.text, "application/json")


def _file_response(text: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Cache-Control": "no-store"})


@require_POST
def start_sample(request: HttpRequest) -> HttpResponse:
    """Create a sample state machine, start it, and redirect to the execution.

    Without a name, the richest sample is started. An existing state machine of this name and
    definition is used; if its definition differs, it is not changed, and a message says so.
    """
    scope = scope_of(request)
    require(scope, "CreateStateMachine")
    require(scope, "StartExecution")
    name = request.POST.get("sample", "") or first_sample()
    sample = next((sample for sample in MACHINES if sample.name == name), None)
    if sample is None:
        raise Http404(f"There is no sample “{name}”.")
    actor = actor_of(scope)
    try:
        machine = machines.create_machine(
            scope.project,
            scope.region,
            name=sample.name,
            definition=sample.definition,
            role_arn=sample_role(scope.project.account_id),
            actor=actor,
        )
        execution = start_execution(machine, input=sample.input, ahead=True, actor=actor)
    except ServiceError as error:
        messages.error(request, f"The sample was not started: {error.message}")
        return redirect("machines")
    return redirect("execution", machine.name, execution.name)


def first_sample() -> str:
    """Return the richest sample that can run here: some need the sample functions."""
    return "OrderProcessing" if settings.STATEYARD_SAMPLE_FUNCTIONS else "HelloWorld"


@require_http_methods(["GET", "POST"])
def settings_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/settings/``; a POST changes one setting."""
    return forms.answer_form_action(
        request,
        machine_name,
        _ACTIONS,
        _render_page,
        "machine-settings",
        lambda act, why: {"errors": {act: why}},
    )


def _render_page(
    request: HttpRequest, machine: StateMachine, *, status: int = 200, **more: Any
) -> HttpResponse:
    logging = json.loads(machine.logging) if machine.logging else {}
    typed: dict[str, str] = more.get("typed", {})
    context = machine_context(machine) | {
        "tab": "settings",
        "levels": LEVELS,
        "level": typed.get("level") or logging.get("level", "OFF"),
        "with_data": "data" in typed if typed else bool(logging.get("includeExecutionData")),
        "group": typed.get("group")
        or log_groups.group_name(logging)
        or f"{log_groups.VENDED}{machine.name}",
        "tracing": bool(machine.tracing and json.loads(machine.tracing).get("enabled")),
        "encryption": json.loads(machine.encryption) if machine.encryption else None,
        "role": typed.get("role") or machine.role_arn,
        "tags": tags.get_tags(machine.arn),
    }
    return render(request, "machines/settings.html", context | more, status=status)


# -- what a form does ------------------------------------------------------------------------------


def _set_logging(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    level, name = sent["level"], sent["group"]
    logging: dict[str, Any] = {"level": level, "includeExecutionData": sent["data"]}
    if name and level != "OFF":
        partition = arns.partition_of(scope.region)
        arn = f"arn:{partition}:logs:{scope.region}:{scope.project.account_id}:log-group:{name}:*"
        logging["destinations"] = [{"cloudWatchLogsLogGroup": {"logGroupArn": arn}}]
    log_groups.check_group_name(scope.project, scope.region, logging)
    plain = logging == {"level": "OFF", "includeExecutionData": False}
    text = "" if plain else json.dumps(logging, sort_keys=True)
    machines.update_machine(machine, logging=text, actor=actor_of(scope))
    return "New executions use these log settings."


def _set_tracing(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    text = json.dumps({"enabled": True}) if sent["tracing"] else ""
    machines.update_machine(machine, tracing=text, actor=actor_of(scope))
    return "Tracing is on." if text else "Tracing is off."


def _set_role(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    machines.update_machine(machine, role_arn=sent["role"], actor=actor_of(scope))
    return "New executions have this role."


def _put_tag(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    key, value = sent["key"], sent["value"]
    for problem in (find(key, value) for find in hooked(Hook.TAG_PROBLEM)):
        if problem:
            raise ValidationException(problem)
    tags.put_tags(machine.arn, {key: value}, scope.project, actor_of(scope))
    return f"The tag {key} is set."


def _remove_tag(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    key = sent["key"]
    tags.remove_tags(machine.arn, [key], scope.project, actor_of(scope))
    return f"The tag {key} is removed."


_ACTIONS: FormActions = {
    "logging": ("UpdateStateMachine", LoggingForm, _set_logging),
    "tracing": ("UpdateStateMachine", TracingForm, _set_tracing),
    "role": ("UpdateStateMachine", RoleForm, _set_role),
    "tag": ("TagResource", TagForm, _put_tag),
    "untag": ("UntagResource", RemoveTagForm, _remove_tag),
}
