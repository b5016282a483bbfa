"""Views of the second factor: its page, the code at sign-in, and a project's requirement."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from cryptography.fernet import InvalidToken
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import ServiceError
from console.feature import has_feature
from console.features.account import second_factor, second_step, sessions
from console.features.account.confirmation import (
    WRONG_CODE,
    Unconfirmed,
    confirm_person,
    wait_words,
)
from console.features.account.forms import CodeForm, RequirementForm, SecondFactorForm
from console.store.people import login_attempts, people
from console.web.core.scope import Scope, actor_of, own_actor, person_of, render, require, scope_of
from console.web.people.forms import NextForm
from console.web.people.login_views import limited_address, open_session, own_address

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

_PAGE = "account/second_factor.html"
_STEP_PAGE = "account/second_step.html"
_SECRET = "second_factor_secret"
"""Session key: the encrypted secret of an app that is not confirmed yet."""
_STEP = "the second step at the sign-in"


@sensitive_post_parameters("code", "password")
@require_http_methods(["GET", "HEAD", "POST"])
def second_factor_page(request: HttpRequest) -> HttpResponse:
    """Show ``/account/second-factor/``: set up, remove, or renew recovery codes."""
    user = person_of(request)
    if people.provider_accounts([user]):
        raise PermissionDenied("You sign in at a provider, which asks for a second factor itself.")
    if request.method != "POST":
        return _render_page(request, user)
    sent = SecondFactorForm(request.POST).values
    act = {"on": _set_up, "off": _switch_off, "codes": _renew_codes}.get(sent["act"])
    if act is None:
        return redirect("second-factor")
    try:
        return act(request, user, sent)
    except Unconfirmed as refused:
        context = {"problem": refused.reason, "problem_of": sent["act"]}
        return _render_page(request, user, refused.status, **context)


def _render_page(request: HttpRequest, user: User, status: int = 200, **more: Any) -> HttpResponse:
    after = NextForm(request.POST).values["next"] or NextForm(request.GET).values["next"]
    factor = second_factor.find_second_factor(user)
    context: dict[str, Any] = {
        "section": "account",
        "factor": factor,
        "required": second_factor.is_required(user),
        "has_password": user.has_usable_password(),
        "next": after,
    }
    if factor is None:
        secret = _waiting_secret(request)
        context["secret"] = " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))
        context["qr_code"] = second_factor.draw_qr_code(user, secret)
    return render(request, _PAGE, {**context, **more}, status=status)


def _waiting_secret(request: HttpRequest) -> str:
    """Return the unconfirmed secret of the reader, the same in all tabs and after Back."""
    try:
        return second_factor.decrypt(request.session[_SECRET])
    except (KeyError, InvalidToken):
        secret = second_factor.make_secret()
        request.session[_SECRET] = second_factor.encrypt(secret)
        return secret


def _set_up(request: HttpRequest, user: User, sent: dict[str, Any]) -> HttpResponse:
    """Confirm an app by its first code; end sessions that began without one."""
    if second_factor.has_second_factor(user):
        messages.info(request, "Your second factor is on already.")
        return redirect("second-factor")
    confirm_person(request, user, sent["password"], None)
    actor = own_actor(user)
    codes = second_factor.activate(user, _waiting_secret(request), sent["code"], actor)
    if codes is None:
        raise Unconfirmed("The code is not correct. Compare the clock of your phone with the time.")
    request.session.pop(_SECRET, None)
    sessions.end_sessions(user, actor, but=request.session.session_key)
    return _show_codes(request, user, codes, "Your second factor is on.")


def _switch_off(request: HttpRequest, user: User, sent: dict[str, Any]) -> HttpResponse:
    confirm_person(request, user, sent["password"], sent["code"])
    second_factor.remove(user, own_actor(user))
    messages.success(request, "Your second factor is off.")
    return redirect("second-factor")


def _renew_codes(request: HttpRequest, user: User, sent: dict[str, Any]) -> HttpResponse:
    confirm_person(request, user, sent["password"], sent["code"])
    codes = second_factor.renew_recovery_codes(user, own_actor(user))
    return _show_codes(request, user, codes, "The former recovery codes work no more.")


def _show_codes(request: HttpRequest, user: User, codes: list[str], news: str) -> HttpResponse:
    """Show new recovery codes once."""
    name = user.get_username()
    text = "".join(f"{code}\n" for code in codes)
    file = f"Stateyard recovery codes of {name}. Each works once.\n\n{text}"
    context = {
        "codes": text.strip(),
        "news": news,
        "file": "data:text/plain;base64," + base64.b64encode(file.encode()).decode(),
        "after": own_address(request, NextForm(request.POST).values["next"]),
    }
    return render(request, "account/recovery_codes.html", {"section": "account", **context})


@login_not_required
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def second_step_page(request: HttpRequest) -> HttpResponse:
    """Show ``/second-step/``: the code after the password."""
    pending = second_step.find_pending(request)
    if pending is None:
        if request.user.is_authenticated:  # Back, after the sign-in
            return redirect("overview")
        messages.info(request, "Sign in again: this sign-in took longer than ten minutes.")
        return redirect("login")
    context = {"name": pending.user.get_username()}
    if request.method != "POST":
        return render(request, _STEP_PAGE, context)
    try:
        attempt = login_attempts.begin_attempt(
            pending.user.get_username(), limited_address(request), _STEP, guessed="codes"
        )
    except login_attempts.TooManyAttempts as locked:
        context["refused"] = wait_words(locked)
        answer = render(request, _STEP_PAGE, context, status=429)
        answer["Retry-After"] = str(locked.seconds)
        return answer
    kind = second_factor.use_code(pending.user, CodeForm(request.POST).values["code"])
    if not kind:
        attempt.failed()
        return render(request, _STEP_PAGE, {**context, "refused": WRONG_CODE}, status=422)
    attempt.succeeded()
    second_step.end_pending(request)
    if kind == second_factor.RECOVERY_CODE:
        _warn_of_codes(request, pending.user)
    return open_session(request, pending.user, pending.after, by=f"{pending.by} and {kind}")


def _warn_of_codes(request: HttpRequest, user: User) -> None:
    factor = second_factor.find_second_factor(user)
    count = factor.codes if factor else 0
    messages.warning(
        request,
        f"You used a recovery code and have {count} more. Is your phone lost? Switch the second"
        " factor off under Your account, and set it up on another one.",
    )


@require_POST
def put_rule(request: HttpRequest) -> HttpResponse:
    """Set whether the project requires a second factor."""
    scope = scope_of(request)
    require(scope, "RequireSecondFactor")
    required = RequirementForm(request.POST).values["required"] == "on"
    try:
        second_factor.require_in(
            scope.project, required=required, actor=actor_of(scope), by=scope.principal.user
        )
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        words = "need a second factor" if required else "may sign in without a second factor"
        messages.success(request, f"Members of {scope.project.name} {words} now.")
    return redirect("members" if has_feature("members") else "project-settings")


def describe_members(scope: Scope) -> dict[str, Any]:
    """Return the context about second factors for the page of members; for owners."""
    if not scope.may("RequireSecondFactor"):
        return {}
    return {
        "second_factor": {
            "required": second_factor.is_required_in(scope.project),
            "without": second_factor.members_without(scope.project),
        }
    }
