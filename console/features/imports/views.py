"""The import page: import execution files, fetch executions of AWS, delete imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import ValidationException
from console.features.imports import fetching
from console.features.imports.forms import FetchForm, ImportForm
from console.models import Execution
from console.recordings.printed import read_printed
from console.store.executions import imports
from console.web.core import addresses
from console.web.core.scope import actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.recordings.printed import Printed
    from console.web.core.scope import Scope

FIELDS = (
    ("history", "Event history", "get-execution-history"),
    ("machine", "State machine", "describe-state-machine-for-execution"),
    ("execution", "Execution (optional)", "describe-execution"),
)
_NAMED_IN = {
    "The history": "history",
    "The state machine": "machine",
    "The definition": "machine",
    "The execution": "execution",
}
"""The beginning of a refusal -> the field that is wrong."""
_MOST_LISTED = 50


@require_http_methods(["GET", "POST"])
def import_page(request: HttpRequest) -> HttpResponse:
    """Show ``/import/``: the form, and earlier imports."""
    scope = scope_of(request)
    refused, status = "", 200
    form, fetch = ImportForm(request.POST, request.FILES), FetchForm(request.POST)
    profile = fetching.profile_of(scope.project)
    if request.method == "POST":
        require(scope, "ImportExecution")
        try:
            if "arn" in request.POST:
                execution = _fetch(scope, profile, fetch.values["arn"])
            else:
                execution = imports.import_execution(scope.project, _read(form), actor_of(scope))
        except ValidationException as error:
            refused, status = error.message, 422
        else:
            messages.success(request, "The execution was imported. It is read-only.")
            return redirect("execution", addresses.import_address(execution), execution.name)
    rows = Execution.imports.filter(project=scope.project).order_by("-imported_ms", "-pk")
    context = {
        "section": "executions",
        "fields": _shown_fields(form, refused),
        "commands": _commands(),
        "refused": refused,
        "allowed": scope.may("ImportExecution"),
        "profile": profile if scope.may("FetchExecution") else "",
        "arn": fetch.data.get("arn", ""),
        "rows": rows.defer("input", "output", "cause", "definition")[:_MOST_LISTED],
    }
    return render(request, "imports/page.html", context, status=status)


def _fetch(scope: Scope, profile: str, arn: str) -> Execution:
    """Import an execution of AWS; raise ``ValidationException``."""
    require(scope, "FetchExecution")
    if not profile:
        raise ValidationException("The operator has set no AWS profile for this project.")
    printed = fetching.fetch_execution(profile, arn)
    reason = f"fetched with the profile {profile}"
    return imports.import_execution(scope.project, printed, actor_of(scope), reason)


@require_POST
def delete_import(request: HttpRequest, number: int) -> HttpResponse:
    """Delete an imported execution."""
    scope = scope_of(request)
    require(scope, "ImportExecution")
    if imports.delete_import(scope.project, number, actor_of(scope)):
        messages.success(request, "The import was deleted.")
    return redirect("import")


@dataclass(frozen=True, slots=True)
class PrintedField:
    """One text to import. ``text``: as pasted; ``problem``: its error."""

    name: str
    word: str
    text: str
    problem: str


def _shown_fields(form: ImportForm, refused: str) -> list[PrintedField]:
    wrong = _NAMED_IN.get(refused.partition(":")[0])
    return [
        PrintedField(name, word, form.data.get(name, ""), refused if name == wrong else "")
        for name, word, _ in FIELDS
    ]


def _commands() -> str:
    """Return the CLI commands that print the texts, in field order."""
    lines = [
        f'aws stepfunctions {command} --execution-arn "$ARN" --output json > {name}.json'
        for name, _, command in FIELDS
    ]
    return "\n".join(("ARN=arn:aws:states:REGION:ACCOUNT:execution:MACHINE:NAME", *lines))


def _read(form: ImportForm) -> Printed:
    """Parse the texts; raise ``ValidationException`` with the reason."""
    if not form.is_valid():
        raise ValidationException(form.first_error[1])
    return read_printed(*(form.printed[name] for name, _, _ in FIELDS))
