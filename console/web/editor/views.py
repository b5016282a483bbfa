"""Answer the editor of definitions: show, check while a person types, save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

import engine
from console import arns
from console.errors import ConflictException, InvalidDefinition, ServiceError
from console.store.db import audit
from console.store.machines import machines as store
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.editor.forms import CheckForm, DefinitionForm
from console.web.editor.problems import problems_in
from console.web.graph import svg
from console.web.machines import definition_source

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine

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
"""How many problems a page lists; errors come first."""
_FIELDS = {"InvalidName": "name", "StateMachineAlreadyExists": "name", "InvalidArn": "role"}


@require_http_methods(["GET", "POST"])
def new_machine(request: HttpRequest) -> HttpResponse:
    """Show an empty editor, or create what was typed."""
    scope = scope_of(request)
    require(scope, "CreateStateMachine")
    if request.method == "GET":
        return _render_form(request, text=STARTER, name="", role=_default_role(scope))
    sent = DefinitionForm(request.POST).values
    typed = _typed_fields(scope, sent)
    if sent["check"]:
        return _render_form(request, **typed)
    try:
        made = store.create_machine(
            scope.project,
            scope.region,
            name=typed["name"],
            definition=typed["text"],
            role_arn=typed["role"],
            actor=actor_of(scope),
        )
    except ServiceError as error:
        return _render_refusal(request, error, **typed)
    return redirect("machine", made.name)


@dataclass(frozen=True, slots=True)
class DefinitionConflict:
    """What somebody else saved since the page of the editor was opened.

    ``saved_by``: "" if nobody knows; ``rows``: from their definition to the one in the editor, None
    if it is too long to compare; ``revision``: what ``Save over it`` may replace.
    """

    revision: str
    saved_by: str
    saved_ms: int
    text: str
    role: str
    rows: list[definition_source.DiffRow] | None


@require_http_methods(["GET", "POST"])
def edit_machine(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show the definition in the editor, or keep what was typed.

    ``revision``: of the machine that the text was made from; ``over``: of the one that the reader
    has seen and wants to replace. Answer 409 with both texts if the machine has another one.
    """
    scope = scope_of(request)
    require(scope, "UpdateStateMachine")
    machine = scope.machine(machine_name)
    if request.method == "GET":
        now = store.revision_of(machine)
        return _render_form(
            request,
            machine=machine,
            text=machine.definition.text,
            role=machine.role_arn,
            revision=now,
        )
    sent = DefinitionForm(request.POST).values
    typed = _typed_fields(scope, sent) | {"machine": machine, "name": machine.name}
    typed["revision"] = sent["revision"]
    if sent["check"]:
        return _render_form(request, **typed)
    before = {"definition": machine.definition.text, "role_arn": machine.role_arn}
    after = {"definition": typed["text"], "role_arn": typed["role"]}
    changed = {field: value for field, value in after.items() if value != before[field]}
    over = sent["over"] or typed["revision"]
    try:
        if changed:
            store.update_machine(machine, actor=actor_of(scope), revision=over, **changed)
    except ConflictException:
        return _render_conflict(request, scope, typed)
    except ServiceError as error:
        return _render_refusal(request, error, **typed)
    return redirect("definition", machine.name)


def _render_conflict(request: HttpRequest, scope: Scope, typed: dict[str, Any]) -> HttpResponse:
    """Show what was typed and what somebody else saved; nothing of either is lost."""
    theirs = scope.machine(typed["name"])
    conflict = DefinitionConflict(
        revision=store.revision_of(theirs),
        saved_by=_saved_by(theirs),
        saved_ms=theirs.updated_ms,
        text=definition_source.readable_text(theirs.definition.text),
        role=theirs.role_arn,
        rows=definition_source.diff_rows(theirs.definition.text, typed["text"]),
    )
    return _render_form(request, status=409, **typed | {"machine": theirs, "conflict": conflict})


def _saved_by(machine: StateMachine) -> str:
    entry = audit.find_latest(
        machine.project, machine.arn, "CreateStateMachine", "UpdateStateMachine"
    )
    return entry.actor if entry else ""


@require_POST
def check_definition(request: HttpRequest) -> HttpResponse:
    """Answer what is typed with its problems and, if it can be drawn, its graph; for editors."""
    require(scope_of(request), "CreateStateMachine")
    return render(
        request,
        "editor/_check_result.html",
        _checked_context(CheckForm(request.POST).values["text"]),
    )


def _checked_context(text: str) -> dict[str, Any]:
    problems = problems_in(text)
    drawn = None
    if not any(problem.severe for problem in problems):
        try:
            drawn = svg.definition_picture(text)
        except engine.DefinitionError:
            drawn = None
    return {
        "problems": problems[:MOST_PROBLEMS],
        "problem_count": len(problems),
        "picture": drawn,
        "broken": drawn is None,
    }


def _typed_fields(scope: Scope, sent: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": sent["name"],
        "role": sent["role"] or _default_role(scope),
        "text": sent["text"],
    }


def _default_role(scope: Scope) -> str:
    return f"arn:{arns.partition_of(scope.region)}:iam::{scope.project.account_id}:role/stepyard"


def _render_refusal(request: HttpRequest, error: ServiceError, **typed: Any) -> HttpResponse:
    """Show the form as it was typed, with the message beside its field."""
    field = _FIELDS.get(error.code, "text")
    if isinstance(error, InvalidDefinition) and error.diagnostics:
        message = "The definition has errors. The list of problems shows them."
    else:
        message = error.message
    return _render_form(request, status=422, errors={field: message}, **typed)


def _render_form(request: HttpRequest, *, status: int = 200, **typed: Any) -> HttpResponse:
    context = {"section": "machines", **_checked_context(typed["text"]), **typed}
    return render(request, "editor/page.html", context, status=status)
