"""Views of a person's own account and its sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from console.features.account import mails, second_factor, sessions
from console.store.people import people
from console.web.core.scope import own_actor, person_of, render

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_safe
def account_page(request: HttpRequest) -> HttpResponse:
    """Show ``/account/``: sessions, second factor, mail address."""
    user = person_of(request)
    context = {
        "section": "account",
        "factor": second_factor.find_second_factor(user),
        "may_have_factor": not people.provider_accounts([user]),
        "mail": mails.sends_mail() and not people.provider_accounts([user]),
        "has_password": user.has_usable_password(),
        "sessions": sessions.list_sessions(user, request.session.session_key),
    }
    return render(request, "account/page.html", context)


@require_POST
def end_session(request: HttpRequest, number: int) -> HttpResponse:
    """End a session of the reader in another browser."""
    user = person_of(request)
    if sessions.end_session(user, number, own_actor(user), request.session.session_key):
        messages.success(request, "That session has ended.")
    else:
        messages.info(request, "No other session of yours has this number: it had ended already.")
    return redirect("account")


@require_POST
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    """End all sessions of the reader except this one."""
    user = person_of(request)
    count = sessions.end_sessions(user, own_actor(user), but=request.session.session_key)
    words = f"{count} other session{'s have' if count != 1 else ' has'} ended."
    messages.success(request, words if count else "You have no other session.")
    return redirect("account")
