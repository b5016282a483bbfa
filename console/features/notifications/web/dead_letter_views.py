"""Views that retry or delete dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import ServiceError
from console.features.notifications.store import deliveries
from console.features.notifications.web import dead_letters
from console.features.notifications.web.forms import DeadLettersForm
from console.models import EventRule
from console.web.core.addresses import page_address
from console.web.core.scope import Scope, actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
def send_delivery_again(request: HttpRequest, number: int) -> HttpResponse:
    """Retry a dead letter."""
    scope = scope_of(request)
    require(scope, "events:SendAgain")
    try:
        deliveries.send_again(scope.project, number, actor_of(scope))
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        messages.success(request, "The event was sent again with the same event id.")
    return _redirect_to_letters(scope)


@require_http_methods(["GET", "POST"])
def send_all_again(request: HttpRequest, number: int) -> HttpResponse:
    """Ask once, then retry the dead letters of a rule: a group by ``cause``, or all."""
    scope = scope_of(request)
    require(scope, "events:SendAgain")
    rule, groups, key = _asked_groups(request, scope, number)
    if request.method == "GET":
        return _render_question(request, rule, groups, key, "notifications/send_again.html")
    count = deliveries.send_all_again(scope.project, rule, actor_of(scope), _errors(groups, key))
    if count:
        events = "1 event was" if count == 1 else f"{count} events were"
        messages.success(request, f"{events} sent again with the same event ids.")
    else:
        messages.error(request, "These deliveries are no longer dead letters.")
    return _redirect_to_letters(scope)


@require_http_methods(["GET", "POST"])
def delete_all(request: HttpRequest, number: int) -> HttpResponse:
    """Ask once, then delete the dead letters of a rule: a group by ``cause``, or all."""
    scope = scope_of(request)
    require(scope, deliveries.DELETE_LETTERS)
    rule, groups, key = _asked_groups(request, scope, number)
    if request.method == "GET":
        return _render_question(request, rule, groups, key, "notifications/delete_letters.html")
    errors = _errors(groups, key)
    count = deliveries.delete_dead_letters(scope.project, rule, actor_of(scope), errors)
    if count:
        letters = "1 dead letter was" if count == 1 else f"{count} dead letters were"
        messages.success(request, f"{letters} deleted.")
    else:
        messages.error(request, "These deliveries are no longer dead letters.")
    return _redirect_to_letters(scope)


def _asked_groups(
    request: HttpRequest, scope: Scope, number: int
) -> tuple[EventRule, list[dead_letters.DeadLetterGroup], str]:
    """Return a rule, the requested groups of its dead letters, and the key of a single one."""
    rule = get_object_or_404(EventRule, pk=number, project=scope.project, region=scope.region)
    groups = dead_letters.group_dead_letters(scope, rule)
    values = request.GET if request.method == "GET" else DeadLettersForm(request.POST).values
    key = values.get("cause", "")
    return rule, [group for group in groups if key in ("", group.key)], key


def _errors(groups: list[dead_letters.DeadLetterGroup], key: str) -> set[str] | None:
    return {error for group in groups for error in group.errors} if key else None


def _render_question(
    request: HttpRequest,
    rule: EventRule,
    groups: list[dead_letters.DeadLetterGroup],
    key: str,
    template: str,
) -> HttpResponse:
    count = sum(group.count for group in groups)
    context = {
        "section": "notifications",
        "rule": rule,
        "groups": groups,
        "key": key,
        "count": min(count, deliveries.MOST_AGAIN),
        "more": count > deliveries.MOST_AGAIN,
        "addresses": sorted({address for group in groups for address in group.addresses}),
    }
    return render(request, template, context)


def _redirect_to_letters(scope: Scope) -> HttpResponse:
    return redirect(page_address(scope, "notifications"))
