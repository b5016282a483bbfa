"""Show the tree of an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.views.decorators.http import require_safe

from console.features.execution_tree.family import (
    MOST_RELATIVES,
    MOST_REPLAYS,
    FamilyPage,
    family_of,
)
from console.web.core.scope import render, scope_of
from console.web.execution.header import base_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_safe
def family_page(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show ``tree/``: related executions with their statuses."""
    execution = scope_of(request).execution(machine_name, execution_name)
    page = FamilyPage.of(request.GET)
    context = {
        **base_context(execution, machine_name),
        "family": family_of(execution, page),
        "begun": page != FamilyPage(),
        "most": MOST_RELATIVES,
        "most_replays": MOST_REPLAYS,
    }
    return render(request, "execution_tree/page.html", context)
