"""Views that change a person's own mail address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_email
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console.config import logging_setup
from console.features.account import confirmation, mails, second_factor
from console.features.account.forms import MailAddressForm
from console.store.people import people
from console.web.core.scope import person_of, render
from console.web.people.login_views import limited_address

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_LONGEST = 254


@sensitive_post_parameters("code", "password")
@require_POST
def put_address(request: HttpRequest) -> HttpResponse:
    """Request a new mail address for the reader: a link sent there confirms it.

    The address can be used to set a new password, so the change needs password and second factor.
    """
    user = person_of(request)
    if not mails.sends_mail():
        raise Http404("This server sends no mail.")
    if people.provider_accounts([user]):
        raise PermissionDenied("You sign in at a provider, so your account needs no address here.")
    sent = MailAddressForm(request.POST).values
    address = sent["address"]
    code = sent["code"] if second_factor.has_second_factor(user) else None
    try:
        if address:
            validate_email(address)
        confirmation.confirm_person(request, user, sent["password"], code)
        if address:
            mails.ask_for_confirmation(user, address, limited_address(request))
    except ValidationError:
        messages.error(request, f"{address[:80]} is no e-mail address.")
    except confirmation.Unconfirmed as refused:
        messages.error(request, refused.reason)
    except mails.TooManyMails as many:
        messages.error(request, f"Too many mails. Try again in {-(-many.seconds // 60)} min.")
    else:
        if address:
            messages.success(request, f"Open the link in the mail to {address} to confirm it.")
        else:
            mails.set_address(user, "", user.email, logging_setup.request_id())
            messages.success(request, "Your account has no e-mail address now.")
    return redirect("account")


@require_http_methods(["GET", "HEAD", "POST"])
def confirm_address(request: HttpRequest, token: str) -> HttpResponse:
    """Show the page of a confirmation link; its POST sets the address."""
    user = person_of(request)
    if people.provider_accounts([user]):
        raise PermissionDenied("You sign in at a provider, so your account needs no address here.")
    if request.method != "POST":
        return render(request, "account/confirm_address.html", {"section": "account"})
    address = mails.take_address(user, token, logging_setup.request_id())
    if not address:
        context = {"section": "account", "closed": True}
        return render(request, "account/confirm_address.html", context, status=410)
    messages.success(request, f"Your e-mail address is {address}.")
    return redirect("account")
