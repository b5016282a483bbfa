"""Redirect signed-out visitors to the sign-in page, with a warning if a form would be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import resolve_url

from console.config import former_name
from console.feature import Hook, hooked
from console.web.core.addresses import page_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from console.web.core.scope import HtmxRequest

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_FORMER_SESSION = f"{former_name.FORMER}_session"


def former_session_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Accept the session cookie under its former name, so that upgrades keep sessions."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if _FORMER_SESSION in request.COOKIES:
            former = request.COOKIES[_FORMER_SESSION]
            request.COOKIES.setdefault(settings.SESSION_COOKIE_NAME, former)
        return get_response(request)

    return answer


class SignInMiddleware(LoginRequiredMiddleware):
    """Handles signed-out requests: pages redirect to the sign-in, fragments get 401.

    A session ends while its pages are open. A redirect would put the page of the sign-in where the
    part belongs, and an act that was not done would look as if it had been.
    """

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[Any, ...],
        view_kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        """Return None if the view may run, else a redirect to sign-in, or 401."""
        answer = super().process_view(request, view_func, view_args, view_kwargs)
        if answer is not None and cast("HtmxRequest", request).htmx:
            return HttpResponse(status=401)
        if answer is None and request.user.is_authenticated:
            answers = (look(request) for look in hooked(Hook.PAGE_REQUEST))
            answer = next(filter(None, answers), None)
        return answer

    def handle_no_permission(
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseRedirect:
        """Redirect to sign-in with a return URL; warn there if a form is lost.

        A form may have an address without a page: the way back is the page that has the form.
        """
        query = QueryDict(mutable=True)
        if request.method in _SAFE_METHODS:
            query["next"] = request.get_full_path()
        else:
            query["next"] = page_before(request) or resolve_url("overview")
            query["unsent"] = "1"
        sign_in = resolve_url(self.get_login_url(view_func))
        return HttpResponseRedirect(f"{sign_in}?{query.urlencode(safe='/')}")
