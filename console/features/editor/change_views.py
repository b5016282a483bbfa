"""Show what the text of the editor changes in the saved definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.views.decorators.http import require_POST

from console.features.editor.forms import CheckForm
from console.features.editor.templates import opened_text
from console.web.core.scope import render, require, scope_of
from console.web.machines.definition_diff import diff_rows

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
def show_changes(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer a text with its difference to the definition that the machine has now."""
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
