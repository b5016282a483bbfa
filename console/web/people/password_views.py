"""Let people set and change their own password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.hashers import make_password
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console.store.people import login_attempts, people
from console.web.core.scope import Scope, actor_of, render, scope_of
from console.web.people.login_views import limited_address, too_many_attempts

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

_PAGE = "people/password.html"
_OWN_COUNT = "the form that changes the password"


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/password/``. A person who has a password must know it; other sessions end."""
    scope = scope_of(request)
    user = scope.principal.user
    submitted = request.POST if request.method == "POST" else None
    has_one = user.has_usable_password()
    form = PasswordChangeForm(user, submitted) if has_one else SetPasswordForm(user, submitted)
    context: dict[str, Any] = {"section": "password", "form": form, "has_one": has_one}
    if submitted is None:
        return render(request, _PAGE, context)
    try:
        valid = _is_valid(request, user, form)
    except login_attempts.TooManyAttempts as locked:
        context["form"] = type(form)(user)
        return too_many_attempts(request, _PAGE, context, locked)
    if not valid:
        return render(request, _PAGE, context, status=422)
    return _set_password(request, scope, form.cleaned_data["new_password1"])


def _is_valid(request: HttpRequest, user: User, form: SetPasswordForm[User]) -> bool:
    """Check the form; raise TooManyAttempts if the current password was guessed at too often.

    A person at an unlocked screen could guess it here as well as at the login.
    """
    if not isinstance(form, PasswordChangeForm):
        return form.is_valid()
    attempt = login_attempts.begin_attempt(
        user.get_username(), limited_address(request), _OWN_COUNT
    )
    valid = form.is_valid()
    if "old_password" in form.errors:
        attempt.failed()
    else:
        attempt.succeeded()
    return valid


def _set_password(request: HttpRequest, scope: Scope, password: str) -> HttpResponse:
    user = scope.principal.user
    encoded = make_password(password)
    if not people.set_password(scope.project, user, encoded, actor_of(scope)):
        messages.error(
            request,
            "Your password was changed on another page in the meantime. It is not changed again.",
        )
        return redirect("password")
    user.password = encoded
    update_session_auth_hash(request, user)
    messages.success(request, "Your password is set. Your other sessions have ended.")
    return redirect("password")
