"""Views of access keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console.config.client_profile import profile_text
from console.db import clock
from console.errors import ServiceError
from console.features.access_keys.forms import (
    LIST,
    KeyForm,
    NewKeyForm,
)
from console.models import AccessKey
from console.models.key_scope import EVERYTHING, KeyScope
from console.store.people import people as store
from console.web.core.formatting import DAY
from console.web.core.scope import Scope, actor_of, render, require, scope_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse


IDLE_DAYS = 90
"""Days without use after which the page marks a key."""
OFFERED_DAYS = 90
"""Days until the expiry date that the form of a new key suggests."""
ACTION_SETS = {
    "all": "All actions of the role",
    "start": "Read, and start executions",
    "read": "Read only",
    LIST: "Only the actions listed below",
}
"""Value of the field ``actions`` -> label."""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key in the table. ``scope``: a text, "" without limits. ``ends_soon``: within a week.

    ``is_idle``: used before, but not in the last ``IDLE_DAYS`` days. ``may_rotate``: the key is
    enabled and not replaced yet, and belongs to the reader or, for an owner, to a service account.
    """

    key: AccessKey
    scope: str
    is_idle: bool
    has_ended: bool
    ends_soon: bool
    may_rotate: bool

    @property
    def is_active(self) -> bool:
        """Whether the key can be used."""
        return self.key.disabled_ms is None and not self.has_ended


def _key_row(key: AccessKey, now_ms: int, own: set[int]) -> KeyRow:
    scope = KeyScope.of_text(key.scope)
    ends_ms = key.expires_ms
    return KeyRow(
        key,
        "" if scope is EVERYTHING else scope.in_words(),
        is_idle=key.last_used_ms is not None and key.last_used_ms < now_ms - IDLE_DAYS * DAY,
        has_ended=ends_ms is not None and ends_ms <= now_ms,
        ends_soon=ends_ms is not None and now_ms < ends_ms <= now_ms + store.WARNED_MS,
        may_rotate=key.user_id in own and not key.replaced_by and key.disabled_ms is None,
    )


def profile_lines(key_id: str, secret: str, address: str, region: str) -> str:
    """Return a profile for ``~/.aws/credentials``. The line of the secret comes last."""
    lines = profile_text(key_id, secret, address=address, region=region).splitlines()
    return "\n".join(sorted(lines, key=lambda line: line.endswith(secret)))


def _service_accounts(scope: Scope) -> list[User]:
    """Return the service accounts for which the reader can create keys."""
    if not scope.may("PutMember"):
        return []
    accounts = store.service_accounts(scope.project)
    return [user for user in accounts if user.pk != scope.principal.user.pk]


def _create_key(scope: Scope, form: NewKeyForm) -> tuple[AccessKey, str]:
    """Create a key for the form's service account or the reader; return its secret, too."""
    user, actor, sent = scope.principal.user, actor_of(scope), form.values
    if not sent["member"]:
        return store.new_key(
            *(user, scope.project, actor, None, sent["description"]),
            scope=form.scope,
            expires_ms=form.expires_ms,
        )
    return store.new_key_of_service_account(
        *(sent["member"], scope.project, actor, user, sent["description"]),
        scope=form.scope,
        expires_ms=form.expires_ms,
    )


@require_http_methods(["GET", "POST"])
def keys_page(request: HttpRequest) -> HttpResponse:
    """Show ``/keys/`` or create a key: the reader's keys, or all keys for an owner."""
    scope = scope_of(request)
    profile = problem = ""
    form = NewKeyForm(request.POST)
    sent = form.values
    if request.method == "POST":
        if sent["member"]:
            require(scope, "PutMember")
        try:
            key, secret = _create_key(scope, form)
            address = request.build_absolute_uri("/").rstrip("/")
            profile = profile_lines(key.key_id, secret, address, scope.region)
        except ServiceError as refused:
            problem = refused.message
    context = {
        "made": profile,
        "made_for": sent["member"],
        "chosen": sent["member"] or request.GET.get("member", ""),
        "sent": sent if problem else None,
        "problem": problem,
    }
    return render_keys(request, scope, context, status=422 if problem else 200)


def render_keys(
    request: HttpRequest, scope: Scope, more: Mapping[str, object], status: int = 200
) -> HttpResponse:
    """Render the page of access keys. ``more``: further context, such as a new key."""
    keys = AccessKey.objects.filter(project=scope.project).select_related("user")
    if not scope.may("RemoveMember"):
        keys = keys.filter(user=scope.principal.user)
    now_ms = clock.now_ms()
    accounts = _service_accounts(scope)
    own = {scope.principal.user.pk, *(user.pk for user in accounts)}
    rows = [_key_row(key, now_ms, own) for key in keys.order_by("user__username", "-created_ms")]
    active = [row for row in rows if row.is_active and not row.key.replaced_by]
    offered = datetime.fromtimestamp((now_ms + OFFERED_DAYS * DAY) / 1000, UTC)
    context = {
        "section": "keys",
        "rows": rows,
        "never_used": sum(row.key.last_used_ms is None for row in active),
        "idle": sum(row.is_idle for row in active),
        "ending": sum(row.ends_soon for row in active),
        "idle_days": IDLE_DAYS,
        "accounts": accounts,
        "action_sets": ACTION_SETS,
        "offered": f"{offered:%Y-%m-%d}",
    }
    return render(request, "access_keys/page.html", {**context, **more}, status=status)


@require_POST
def change_key(request: HttpRequest, key: str) -> HttpResponse:
    """Disable, enable or delete a key, or change its description; then redirect to the list."""
    scope = scope_of(request)
    try:
        access_key = store.get_key(scope.project, key)
        if access_key.user_id != scope.principal.user.pk:
            require(scope, "PutMember")
        act = KeyForm(request.POST).values["act"]
        if act == "delete":
            store.delete_key(scope.project, key, actor_of(scope), scope.principal.user)
            messages.success(request, f"The key {key} was deleted.")
        elif act == "describe":
            description = KeyForm(request.POST).values["description"]
            store.describe_key(
                *(scope.project, key, description, actor_of(scope), scope.principal.user)
            )
            messages.success(request, f"The description of {key} was saved.")
        else:
            on = act == "enable"
            who = scope.principal.user
            store.switch_key(scope.project, key, on=on, actor=actor_of(scope), by=who)
            messages.success(request, f"The key {key} was {'enabled' if on else 'disabled'}.")
    except ServiceError as refused:
        messages.error(request, refused.message)
    return redirect("keys")
