"""Views that rotate access keys and change their limits, and the page *Service accounts*."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import ServiceError, ValidationException
from console.features.access_keys import accounts, limits, rotation
from console.features.access_keys.forms import (
    ChangedLimitsForm,
    LimitError,
    ServiceAccountForm,
    shown_limits,
)
from console.features.access_keys.key_views import ACTION_SETS, profile_lines, render_keys
from console.store.people import people
from console.web.core.scope import Scope, actor_of, render, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import AccessKey


@require_POST
def rotate_key(request: HttpRequest, key: str) -> HttpResponse:
    """Rotate a key, and show the new secret once."""
    scope = scope_of(request)
    user = scope.principal.user
    try:
        new, secret = rotation.rotate_key(scope.project, key, actor_of(scope), user)
    except ServiceError as error:
        return render_keys(request, scope, {"problem": error.message}, status=422)
    address = request.build_absolute_uri("/").rstrip("/")
    context = {
        "made": profile_lines(new.key_id, secret, address, scope.region),
        "made_for": "" if new.user_id == user.pk else new.user.get_username(),
        "rotated": key,
    }
    return render_keys(request, scope, context)


@require_http_methods(["GET", "POST"])
def key_limits_page(request: HttpRequest, key: str) -> HttpResponse:
    """Show ``/keys/KEY/limits/``: the scope and expiry of a key; a POST changes them."""
    scope = scope_of(request)
    user = scope.principal.user
    errors: dict[str, str] = {}
    try:
        access_key = _changeable_key(scope, key)
        sent = shown_limits(access_key)
        if request.method == "POST":
            form = ChangedLimitsForm(request.POST)
            sent = form.values
            chosen = form.limits(access_key)
            limits.change_limits(scope.project, key, *chosen, actor_of(scope), user)
            messages.success(request, f"The limits of {key} are saved. They count from now on.")
            return redirect("keys")
    except LimitError as error:
        errors[error.field] = error.message
    except ServiceError as refused:
        messages.error(request, refused.message)
        return redirect("keys")
    context = {
        "section": "keys",
        "key": access_key,
        "sent": sent,
        "errors": errors,
        "action_sets": ACTION_SETS,
    }
    return render(request, "access_keys/limits.html", context, status=422 if errors else 200)


def _changeable_key(scope: Scope, key_id: str) -> AccessKey:
    """Return a key whose limits the reader may change; raise ServiceError."""
    key = people.get_key(scope.project, key_id)
    owners = {scope.principal.user.pk}
    if scope.may("PutMember"):
        owners |= {user.pk for user in people.service_accounts(scope.project)}
    if key.user_id not in owners:
        raise limits.foreign_key(key)
    limits.check_changeable(key)
    return key


@require_http_methods(["GET", "POST"])
def service_accounts_page(request: HttpRequest) -> HttpResponse:
    """Show ``/service-accounts/``; a POST creates, changes or deletes an account."""
    scope = scope_of(request)
    problem, sent = "", ServiceAccountForm(request.POST).values
    if request.method == "POST":
        try:
            outcome = _change_accounts(scope, **sent)
        except ServiceError as error:
            problem = error.message
        else:
            messages.success(request, outcome)
            return redirect("service-accounts")
    context = {
        "section": "service-accounts",
        "rows": accounts.list_accounts(scope.project),
        "roles": [(role, role.label) for role in accounts.ROLES],
        "problem": problem,
        "sent": sent if problem and sent["act"] == "create" else None,
    }
    return render(
        request, "access_keys/service_accounts.html", context, status=422 if problem else 200
    )


def _change_accounts(scope: Scope, act: str, name: str, role: str, description: str) -> str:
    """Run the action of the form; return a message of success."""
    actor, by = actor_of(scope), scope.principal.user
    if act == "create":
        accounts.create_account(scope.project, name, role, description, actor, by)
        return f"The service account {name} was created. Create its key next."
    if act == "change":
        accounts.change_account(scope.project, name, role, description, actor, by)
        return f"The service account {name} was changed."
    if act == "delete":
        accounts.delete_account(scope.project, name, actor, by)
        return f"The service account {name} and its keys were deleted."
    raise ValidationException(f"There is no action {act[:40]!r}.")
