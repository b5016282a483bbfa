"""View of the palette: a page of its own, or the result list of the dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.views.decorators.http import require_safe

from console.features.palette import elsewhere, matches
from console.web.core.scope import render, scope_of

if TYPE_CHECKING:
    from django.http import HttpResponse

    from console.web.core.scope import HtmxRequest


@require_safe
def palette_page(request: HtmxRequest) -> HttpResponse:
    """Show ``/palette/``: the matches of ``q``; for htmx only the list."""
    text = request.GET.get("q", "").replace("\0", "").strip()[: matches.LONGEST]
    scope = scope_of(request)
    groups = [*matches.find_matches(scope, text), *elsewhere.find_elsewhere(scope, text)]
    context = {"text": text, "groups": groups}
    return render(
        request, "palette/_matches.html" if request.htmx else "palette/page.html", context
    )
