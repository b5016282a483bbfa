"""Views that redirect a person to their provider, and complete the sign-in on return.

Without a provider, django-allauth is not loaded, so ``flow`` and ``accounts`` are imported late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from console.features.sign_in.forms import LogoutForm
from console.web.people.forms import NextForm
from console.web.people.login_views import own_address

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@login_not_required
@require_safe
def begin_sign_in(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Redirect to the provider; a link from another site leads to the sign-in page instead.

    Otherwise such a link could sign a person in to another account without a click of theirs.
    """
    _require_provider(provider_id)
    if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
        return redirect("login")
    from console.features.sign_in import flow

    after = own_address(request, NextForm(request.GET).values["next"])
    return flow.begin(request, provider_id, after)


@login_not_required
@require_safe
def finish_sign_in(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Answer the provider's redirect: begin a session, or show why not."""
    _require_provider(provider_id)
    from console.features.sign_in import flow

    return flow.finish(request, provider_id)


@csrf_exempt  # the provider's server sends it, and its signature counts
@login_not_required
@require_POST
def end_sessions(request: HttpRequest, provider_id: str) -> HttpResponse:
    """End the sessions that a provider's logout token names."""
    _require_provider(provider_id)
    from console.features.sign_in import logout

    return logout.end_sessions(
        request, provider_id, LogoutForm(request.POST).values["logout_token"]
    )


def _require_provider(provider_id: str) -> None:
    if provider_id not in settings.STATEYARD_OIDC:
        raise Http404("There is no such provider.")
