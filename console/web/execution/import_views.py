"""Import an execution from elsewhere (AWS), from the output of AWS CLI commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import ValidationException
from console.models import Execution
from console.store.executions import imports
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.forms import ImportForm

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

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
"""How a refusal begins -> the field that is wrong."""
_MOST_LISTED = 50


@require_http_methods(["GET", "POST"])
def import_page(request: HttpRequest) -> HttpResponse:
    """Show ``/import/``: the form, and earlier imports."""
    scope = scope_of(request)
    refused, status = "", 200
    form = ImportForm(request.POST, request.FILES)
    if request.method == "POST":
        require(scope, "ImportExecution")
        try:
            execution = imports.import_execution(scope.project, _read(form), actor_of(scope))
        except ValidationException as error:
            refused, status = error.message, 422
        else:
            messages.success(request, "The execution was imported. It is read-only.")
            return redirect("execution", imports.machine_address(execution), execution.name)
    rows = Execution.imports.filter(project=scope.project).order_by("-imported_ms", "-pk")
    context = {
        "section": "executions",
        "fields": _shown_fields(form, refused),
        "commands": _commands(),
        "refused": refused,
        "allowed": scope.may("ImportExecution"),
        "rows": rows.defer("input", "output", "cause", "definition")[:_MOST_LISTED],
    }
    return render(request, "execution/import.html", context, status=status)


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


def _read(form: ImportForm) -> imports.Printed:
    """Parse the texts; raise ``ValidationException`` with the reason."""
    if not form.is_valid():
        raise ValidationException(form.first_error[1])
    return imports.read_printed(*(form.printed[name] for name, _, _ in FIELDS))
