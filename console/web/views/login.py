"""How does a person come in?  By a one-time link, or with name and password."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_not_required
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console import clock
from console.models import LoginLink
from console.web.page import render

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def form(request: HttpRequest) -> HttpResponse:
    """Ask for name and password."""
    after = request.POST.get("next") or request.GET.get("next", "")
    if request.method == "GET":
        return render(request, "login/page.html", {"next": after})
    name, password = request.POST.get("username", ""), request.POST.get("password", "")
    user = authenticate(request, username=name, password=password)
    if user is None:
        context = {"next": after, "username": name, "refused": "Name or password is not right."}
        return render(request, "login/page.html", context, status=422)
    login(request, user)
    mine = url_has_allowed_host_and_scheme(after, {request.get_host()}, request.is_secure())
    return redirect(after if mine and after.startswith("/") else "overview")


@login_not_required
@require_http_methods(["GET", "POST"])
def link(request: HttpRequest, token: str) -> HttpResponse:
    """Take a one-time link, which works once; a used or old one says so."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    now = clock.now_ms()
    fresh = LoginLink.objects.filter(token_hash=digest, used_ms=None, expires_ms__gt=now)
    if fresh.update(used_ms=now) != 1:
        return render(request, "login/used.html", status=410)
    user = LoginLink.objects.select_related("user").get(token_hash=digest).user
    if not user.is_active:
        return render(request, "login/used.html", status=410)
    login(request, user, backend=_BACKEND)
    return redirect("overview")


@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Sign out."""
    logout(request)
    return redirect("login")
