"""Views of the editor: show, validate while typing, keep drafts, save."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console import arns
from console.cli.documents import SourceError
from console.errors import ConflictException, InvalidDefinition, ServiceError, ValidationException
from console.features.editor.conversion import ForeignText, account_of, convert_text, examine_text
from console.features.editor.forms import CheckForm, DefinitionForm, DraftForm
from console.features.editor.merge import (
    DefinitionConflict,
    definition_conflict,
    merge_definitions,
)
from console.features.editor.preview import ShownPreview, preview_context, read_shown
from console.features.editor.problems import list_problems
from console.features.editor.snippets import snippets_json
from console.features.editor.suggestions import suggestions_for
from console.features.editor.tag_lines import read_tags, tag_lines
from console.features.editor.templates import TEMPLATES, find_template, opened_text
from console.features.versions.definition_diff import diff_rows
from console.statuses import MachineType
from console.store.machines import drafts
from console.store.machines import machines as store
from console.web.core.addresses import page_address, page_before
from console.web.core.scope import Scope, actor_of, choose, render, require, scope_of
from console.web.graph.graph_view import graph_view_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.models import DefinitionDraft, StateMachine
    from console.web.graph.graph_view import GraphView

STARTER = """{
  "Comment": "A new state machine",
  "StartAt": "Greet",
  "States": {
    "Greet": {
      "Type": "Pass",
      "Result": "Hello",
      "End": true
    }
  }
}"""
MOST_PROBLEMS = 100
"""Maximum number of listed problems; errors come first."""
_FIELDS = {
    "InvalidName": "name",
    "StateMachineAlreadyExists": "name",
    "InvalidArn": "role",
    "TooManyTags": "tags",
}


@require_http_methods(["GET", "POST"])
def new_machine(request: HttpRequest) -> HttpResponse:
    """Show an empty editor; a POST creates the state machine."""
    scope = scope_of(request)
    require(scope, "CreateStateMachine")
    if request.method == "GET":
        template = find_template(choose(request.GET, "template", [each.key for each in TEMPLATES]))
        text = template.text if template else STARTER
        draft = None if template else _draft(request, scope, "", STARTER)
        role = _default_role(scope)
        return _render_form(request, text=text, name="", role=role, draft=draft)
    sent = DefinitionForm(request.POST).values
    typed = _typed_fields(scope, sent)
    if sent["check"]:
        return _render_form(request, **typed)
    if sent["convert"]:
        return _render_converted(request, scope, typed, sent["convert"])
    tags, problem = read_tags(sent["tags"])
    if problem:
        return _render_form(request, status=422, errors={"tags": problem}, **typed)
    try:
        machine = store.create_machine(
            scope.project,
            scope.region,
            name=typed["name"],
            definition=typed["text"],
            role_arn=typed["role"],
            type=typed["type"],
            tags=tags,
            note=sent["note"],
            actor=actor_of(scope),
        )
    except ServiceError as error:
        return _render_refusal(request, error, **typed)
    drafts.close_draft(scope.project, scope.principal.user, "", sent["page"])
    return redirect(page_address(scope, "start" if sent["run"] else "machine", machine.name))


@require_http_methods(["GET", "POST"])
def edit_machine(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show a definition in the editor; a POST saves it.

    ``revision``: the revision that the text is based on; ``over``: the later revision that the
    reader has agreed to overwrite. ``?execution=``: the failed execution that the reader wants to
    fix. Answer 409 with both texts if the state machine has changed, and with the text in the
    editor of a new state machine if it was deleted.
    """
    scope = scope_of(request)
    require(scope, "UpdateStateMachine")
    try:
        machine = scope.machine(machine_name)
    except Http404:
        if not request.POST.get("text"):
            raise
        return _render_deleted(request, scope, machine_name)
    failed = request.GET.get("execution", "")
    if failed:
        scope.own_execution(machine_name, failed)
    if request.method == "GET":
        opened = opened_text(machine.definition.text)
        now = store.revision_of(machine)
        return _render_form(
            request,
            asked_state=request.GET.get("state", "")[:80],
            machine=machine,
            text=opened,
            formatted=opened != machine.definition.text,
            role=machine.role_arn,
            revision=now,
            draft=_draft(request, scope, machine.arn, opened),
        )
    return _save_text(request, scope, machine, failed)


def _save_text(
    request: HttpRequest, scope: Scope, machine: StateMachine, failed: str
) -> HttpResponse:
    """Save the typed definition, or check, convert or merge it."""
    opened = opened_text(machine.definition.text)
    sent = DefinitionForm(request.POST).values
    typed = _typed_fields(scope, sent) | {"machine": machine, "name": machine.name}
    typed["revision"] = sent["revision"]
    if sent["check"]:
        return _render_form(request, **typed)
    if sent["convert"]:
        return _render_converted(request, scope, typed, sent["convert"])
    if sent["merge"]:
        return _merge(request, scope, typed, sent["merge"])
    stored = machine.definition.text
    before = {"definition": stored, "role_arn": machine.role_arn}
    definition = stored if typed["text"] == opened else typed["text"]
    after = {"definition": definition, "role_arn": typed["role"]}
    changed = {field: value for field, value in after.items() if value != before[field]}
    over = sent["over"] or typed["revision"]
    try:
        if changed:
            note, actor = sent["note"], actor_of(scope)
            store.update_machine(machine, actor=actor, revision=over, note=note, **changed)
    except ConflictException:
        theirs = scope.machine(machine.name)
        conflict = definition_conflict(theirs, typed["text"], typed["revision"])
        return _render_conflict(request, scope, typed, conflict)
    except ServiceError as error:
        return _render_refusal(request, error, **typed)
    drafts.close_draft(scope.project, scope.principal.user, machine.arn, sent["page"])
    if sent["run"]:
        return redirect(page_address(scope, "start", machine.name, origin=failed))
    return redirect(page_address(scope, "definition", machine.name, execution=failed))


def _render_deleted(request: HttpRequest, scope: Scope, machine_name: str) -> HttpResponse:
    """Show the text typed for a deleted state machine, which can be created with it."""
    require(scope, "CreateStateMachine")
    typed = _typed_fields(scope, DefinitionForm(request.POST).values) | {"name": machine_name}
    why = (
        f"There is no state machine “{machine_name}” any more. Create saves your text as a new one."
    )
    return _render_form(request, status=409, errors={"name": why}, **typed)


def _render_converted(
    request: HttpRequest, scope: Scope, typed: dict[str, Any], choice: str
) -> HttpResponse:
    """Show the definition converted from a text, with the template's name and role."""
    try:
        converted = convert_text(typed["text"], choice, account_of(scope))
    except SourceError as error:
        return _render_form(request, status=422, errors={"text": str(error)}, **typed)
    if converted and converted.machine and "machine" not in typed:
        machine = converted.machine
        typed |= {"name": typed["name"] or machine.name, "type": machine.type}
        typed["tags"] = typed["tags"] or tag_lines(machine.tags)
    return _render_form(request, **typed | ({"text": converted.text} if converted else {}))


def _render_conflict(
    request: HttpRequest, scope: Scope, typed: dict[str, Any], conflict: DefinitionConflict
) -> HttpResponse:
    """Show the typed definition and the definition that another person has saved."""
    theirs = scope.machine(typed["name"])
    return _render_form(request, status=409, **typed | {"machine": theirs, "conflict": conflict})


def _merge(request: HttpRequest, scope: Scope, typed: dict[str, Any], seen: str) -> HttpResponse:
    """Put the merged text into the editor; after another save, show the conflict again.

    ``seen``: the revision of the other person's text that the reader merged.
    """
    conflict = definition_conflict(typed["machine"], typed["text"], typed["revision"])
    merged = merge_definitions(conflict, request.POST)
    if merged is None or conflict.revision != seen:
        return _render_conflict(request, scope, typed, conflict)
    merged_form = typed | {"text": merged, "revision": seen, "merged": True, "unsaved": True}
    return _render_form(request, **merged_form)


@require_POST
def check_definition(request: HttpRequest) -> HttpResponse:
    """Return the problems of the typed text and, if it can be drawn, its graph."""
    require(scope_of(request), "CreateStateMachine")
    sent = CheckForm(request.POST).values
    return render(
        request,
        "editor/_check_result.html",
        _checked_context(
            sent["text"],
            sent["type"] or MachineType.STANDARD,
            _view_of(request),
            read_shown(sent),
        ),
    )


def _checked_context(
    text: str, kind: str, view: GraphView, shown: ShownPreview | None = None
) -> dict[str, Any]:
    """Return problems and picture. ``kind``: the type of the machine, STANDARD or EXPRESS."""
    preview = preview_context(text, kind, view, shown)
    foreign = examine_text(text) if preview["broken"] else ForeignText()
    problems = list_problems(text, kind, foreign)
    return {
        **preview,
        "problems": problems[:MOST_PROBLEMS],
        "problem_count": len(problems),
        "foreign": foreign,
    }


def _view_of(request: HttpRequest) -> GraphView:
    return replace(graph_view_of(request), plain=True)


def _draft(
    request: HttpRequest, scope: Scope, machine_arn: str, saved: str
) -> DefinitionDraft | None:
    """Return the reader's draft, None if equal to the saved text or discarded."""
    if "fresh" in request.GET:
        return None
    draft = drafts.find_draft(scope.project, scope.principal.user, machine_arn)
    return None if draft is None or draft.text == saved else draft


def _typed_fields(scope: Scope, sent: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": sent["name"],
        "role": sent["role"] or _default_role(scope),
        "text": sent["text"],
        "tags": sent["tags"],
        "type": sent["type"] or MachineType.STANDARD,
        "note": sent["note"],
        "unsaved": True,
    }


def _default_role(scope: Scope) -> str:
    return f"arn:{arns.partition_of(scope.region)}:iam::{scope.project.account_id}:role/stateyard"


def _render_refusal(request: HttpRequest, error: ServiceError, **typed: Any) -> HttpResponse:
    """Show the typed form again, with the message beside its field."""
    field = _FIELDS.get(error.code, "text")
    if isinstance(error, InvalidDefinition) and error.diagnostics:
        message = "The definition has errors. The list of problems shows them."
    else:
        message = error.message
    return _render_form(request, status=422, errors={field: message}, **typed)


def _render_form(request: HttpRequest, *, status: int = 200, **typed: Any) -> HttpResponse:
    machine = typed.get("machine")
    kind = machine.type if machine else typed.get("type", MachineType.STANDARD)
    shown = ShownPreview(chosen=typed.get("asked_state", ""))
    scope = scope_of(request)
    context = {
        "section": "machines",
        "templates": TEMPLATES,
        "suggestions": suggestions_for(scope, machine),
        "snippets": snippets_json(scope.project.account_id),
        **_checked_context(typed["text"], kind, _view_of(request), shown),
        **typed,
    }
    context["asked_is_gone"] = typed.get("asked_state") and not any(
        place.name == typed["asked_state"] for place in context.get("state_places", ())
    )
    return render(request, "editor/page.html", context, status=status)


@require_POST
def show_changes(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show the diff between a text and the state machine's current definition."""
    scope = scope_of(request)
    require(scope, "UpdateStateMachine")
    # one that is stored in one line has the lines that the editor gave it
    machine = scope.machine(machine_name)
    saved = opened_text(machine.definition.text)
    sent = CheckForm(request.POST).values
    rows = diff_rows(saved, sent["text"])
    signs = [row.sign for row in rows or ()]
    context: dict[str, object] = {
        "rows": rows,
        "added": signs.count("+"),
        "removed": signs.count("-"),
    }
    if sent["role"] and sent["role"] != machine.role_arn:
        context |= {"role_before": machine.role_arn, "role_after": sent["role"]}
    return render(request, "editor/_changes.html", context)


@require_POST
def keep_new_draft(request: HttpRequest) -> HttpResponse:
    """Store or delete the draft of a new state machine."""
    scope = scope_of(request)
    require(scope, "CreateStateMachine")
    return _keep(request, scope, "")


@require_POST
def keep_draft(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Store or delete the draft of a state machine's definition."""
    scope = scope_of(request)
    require(scope, "UpdateStateMachine")
    return _keep(request, scope, scope.machine(machine_name).arn)


def _keep(request: HttpRequest, scope: Scope, machine_arn: str) -> HttpResponse:
    sent = DraftForm(request.POST).values
    user = scope.principal.user
    if sent["discard"]:
        drafts.remove_draft(scope.project, user, machine_arn)
        if not sent["back"]:
            return HttpResponse(status=204)
        messages.success(request, "The draft was discarded.")
        name = machine_arn.rpartition(":")[2]
        view, names = ("definition", [name]) if name else ("machines", [])
        return redirect(page_before(request) or page_address(scope, view, *names))
    try:
        text, revision, page = sent["text"], sent["revision"], sent["page"]
        drafts.put_draft(scope.project, user, machine_arn, text, revision, page)
    except ValidationException as error:
        return HttpResponse(error.message, status=422, content_type="text/plain")
    return HttpResponse(status=204)
