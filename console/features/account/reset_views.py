"""Views for a new password by mail, based on Django's views and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.hashers import make_password
from django.contrib.auth.views import (
    INTERNAL_RESET_SESSION_TOKEN,
    PasswordResetConfirmView,
    PasswordResetView,
)
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator

from console.db.writer import write
from console.features.account import mails, record, sessions
from console.store.people import people
from console.web.core.scope import own_actor, render
from console.web.people.login_views import limited_address

if TYPE_CHECKING:
    from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

_SENT = (
    "If an account with a password has this address, a mail with a link is on its way. Look into"
    " the folder for spam as well."
)


@method_decorator(login_not_required, name="dispatch")
class ResetRequestPage(PasswordResetView):
    """Show ``/password-reset/``, which requests a link.

    The response is the same for every mail address.
    """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer 404 if there are no passwords or no mails."""
        _check_offered()
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: PasswordResetForm) -> HttpResponse:
        """Queue the mail; the worker looks up the account."""
        try:
            mails.ask_for_reset(form.cleaned_data["email"], limited_address(self.request))
        except mails.TooManyMails as many:
            words = f"Too many requests. Try again in {-(-many.seconds // 60)} min."
            answer = self._answer(form, 429, refused=words)
            answer["Retry-After"] = str(many.seconds)
            return answer
        messages.info(self.request, _SENT)
        return redirect("login")

    def form_invalid(self, form: PasswordResetForm) -> HttpResponse:
        """Report an invalid mail address."""
        return self._answer(form, 422, refused=str(form.errors["email"][0]))

    def render_to_response(self, context: dict[str, Any], **_kwargs: Any) -> HttpResponse:
        """Render the page."""
        return self._answer(context["form"], 200)

    def _answer(self, form: PasswordResetForm, status: int, **more: Any) -> HttpResponse:
        context = {"address": form.data.get("email", ""), **more}
        return render(self.request, "account/reset_request.html", context, status=status)


@method_decorator(login_not_required, name="dispatch")
class NewPasswordPage(PasswordResetConfirmView):
    """Show the page of the link in the mail, which sets a new password.

    The first request moves the token from the URL into the session. Opening the link does not use
    it up.
    """

    success_url = reverse_lazy("login")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer 404 if there are no passwords or no mails."""
        _check_offered()
        return super().dispatch(request, *args, **kwargs)

    def get_user(self, uidb64: str) -> User | None:
        """Return the person of the link, None for an account of a provider."""
        user: User | None = super().get_user(uidb64)
        if user is None or not user.is_active or not user.has_usable_password():
            return None
        return None if people.provider_accounts([user]) else user

    def form_valid(self, form: SetPasswordForm[User]) -> HttpResponse:
        """Set the password unless it changed meanwhile; end all sessions of the person."""
        self.request.session.pop(INTERNAL_RESET_SESSION_TOKEN, None)
        words = limited_address(self.request) or "an unknown address"
        if not _reset_password(form.user, form.cleaned_data["new_password1"], words):
            return self._answer({}, 410)
        messages.success(self.request, "Your new password is set. Sign in with it.")
        return redirect("login")

    def render_to_response(self, context: dict[str, Any], **_kwargs: Any) -> HttpResponse:
        """Render the form, or a note that the link no longer works."""
        if not self.validlink:
            return self._answer({}, 410)
        form = context["form"]
        values = {"form": form, "name": form.user.get_username()}
        return self._answer(values, 422 if form.is_bound else 200)

    def _answer(self, context: dict[str, Any], status: int) -> HttpResponse:
        return render(self.request, "account/new_password.html", context, status=status)


def _reset_password(user: User, password: str, client: str) -> bool:
    """Set the password if it is unchanged since the link was made; of two forms, one wins."""
    encoded = make_password(password)
    actor = own_actor(user)

    def store() -> bool:
        before = get_user_model().objects.filter(pk=user.pk, password=user.password)
        if before.update(password=encoded) != 1:
            return False
        record.record_for(user, actor, "ResetPassword", f"by mail, from {client}")
        return True

    if not write(store):
        return False
    sessions.end_sessions(user, actor)
    return True


def _check_offered() -> None:
    """Raise ``Http404`` if this server offers no new passwords by mail."""
    if not mails.offers_reset():
        raise Http404("This server sends no mail, or has no passwords.")


reset_request_page = ResetRequestPage.as_view()
new_password_page = NewPasswordPage.as_view()
