"""Mails about accounts: a link for a new password, and a link that confirms a mail address.

A page only writes a row, whether the mail address belongs to an account or not. The leading worker
looks up the account and sends the mail. So neither the page nor its response time reveals who has
an account. A mail that the mail server rejects is retried for some minutes.
"""

from __future__ import annotations

from functools import partial
from smtplib import SMTPException, SMTPRecipientsRefused
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import PasswordResetForm
from django.contrib.auth.tokens import default_token_generator
from django.core import signing
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from console.config.public_address import page_address
from console.db import clock
from console.db.writer import write
from console.features.account import record
from console.features.account.models import AccountMail
from console.store.people import login_attempts, people

if TYPE_CHECKING:
    from django.contrib.auth.models import User

MOST_TO_ADDRESS = 3
"""Maximum number of mails to one address within ``login_attempts.WINDOW_MS``."""
MOST_OF_CLIENT = 20
"""Maximum number of requests of a client IP in that time; a team may share one."""
MOST_OF_PERSON = 5
MOST_ACCOUNTS = 10
"""Maximum number of accounts of one mail address that get a link."""
CONFIRM_S = 24 * 3600
_AT_ONCE = 20
_RETRY_MS = 30_000
_LAST_MS = 15 * 60_000
"""The age at which a mail is no longer retried: the person has asked again by then."""
_MINUTES = 60
_TO_ADDRESS = "mail to address"
_SALT = "stateyard.mail-address"
_SERVER = record.Actor("stateyard")
log = structlog.get_logger(__name__)


class TooManyMails(Exception):
    """A client or person has requested too many mails; ``seconds``: until the next one."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def sends_mail() -> bool:
    """Return whether the server can mail links: it has a mail server and a public URL."""
    return bool(settings.STATEYARD_MAIL and page_address())


def offers_reset() -> bool:
    """Return whether people can get a new password by mail."""
    return bool(settings.STATEYARD_PASSWORDS and sends_mail())


def ask_for_reset(address: str, client: str) -> None:
    """Queue a mail with a link for each account of a mail address; raise ``TooManyMails``.

    Above the limit of one address, requests are ignored without an error.
    """
    seconds = login_attempts.count_use("reset of client", client, MOST_OF_CLIENT)
    if seconds:
        raise TooManyMails(seconds)
    if login_attempts.count_use(_TO_ADDRESS, address.casefold(), MOST_TO_ADDRESS) == 0:
        _store_mail(address, None, client)


def ask_for_confirmation(user: User, address: str, client: str) -> None:
    """Queue a mail that confirms a person's new address; raise ``TooManyMails``."""
    seconds = login_attempts.count_use("address of", user.get_username(), MOST_OF_PERSON)
    seconds = seconds or login_attempts.count_use(_TO_ADDRESS, address.casefold(), MOST_TO_ADDRESS)
    if seconds:
        raise TooManyMails(seconds)
    _store_mail(address, user, client)


def _store_mail(address: str, user: User | None, client: str) -> None:
    now_ms = clock.now_ms()
    mail = AccountMail(address=address, user=user, client=client, at_ms=now_ms, next_ms=now_ms)
    write(mail.save)


def take_address(user: User, token: str, request_id: str) -> str:
    """Set a person's mail address from a confirmation link; return it, "" if the link is invalid.

    A link ends after a day, and when the account's address has changed since.
    """
    try:
        pk, address, former = signing.loads(token, salt=_SALT, max_age=CONFIRM_S)
    except (signing.BadSignature, ValueError):
        return ""
    if pk != user.pk or not set_address(user, address, former, request_id):
        return ""
    return str(address)


def set_address(user: User, address: str, former: str, request_id: str) -> bool:
    """Set an account's mail address; return False if it is no longer ``former``."""
    actor = record.Actor(user.get_username(), request_id=request_id)

    def store() -> bool:
        before = get_user_model().objects.filter(pk=user.pk, email=former)
        if before.update(email=address) != 1:
            return False
        record.record_for(user, actor, "SetMailAddress", address or "none")
        return True

    return write(store)


def forget_address(user: User) -> None:
    """Delete the mail address of a closed account (inside a transaction)."""
    AccountMail.objects.filter(user=user).delete()
    get_user_model().objects.filter(pk=user.pk).update(email="")
    user.email = ""


# -- the leading worker ----------------------------------------------------------------------------


def send_waiting() -> None:
    """Send the queued mails, until the mail server fails."""
    now_ms = clock.now_ms()
    due = AccountMail.objects.filter(next_ms__lte=now_ms).select_related("user")
    for mail in due.order_by("pk")[:_AT_ONCE]:
        if now_ms - mail.at_ms > _LAST_MS or not sends_mail():
            log.warning("a mail about an account is given up")
            _remove(mail)
        elif not _send(mail):
            again = AccountMail.objects.filter(pk=mail.pk)
            write(partial(again.update, next_ms=clock.now_ms() + _RETRY_MS))
            return


def _send(mail: AccountMail) -> bool:
    """Send a queued mail to each account and delete its row; return False to retry it."""
    try:
        if mail.user is not None:
            _confirmation(mail.user, mail.address).send()
        else:
            _send_resets(mail)
    except SMTPRecipientsRefused:
        log.warning("the mail server refuses an address of an account")
    except (OSError, SMTPException) as error:
        log.warning("cannot send a mail about an account", problem=type(error).__name__)
        return False
    _remove(mail)
    return True


def _remove(mail: AccountMail) -> None:
    write(AccountMail.objects.filter(pk=mail.pk).delete)


def _send_resets(mail: AccountMail) -> None:
    """Send a link to each account of the mail address."""
    reason = f"asked from {mail.client or 'an unknown address'}"
    for user in accounts_of(mail.address):
        _reset(user).send()
        write(partial(record.record_for, user, _SERVER, "SendPasswordReset", reason))


def accounts_of(address: str) -> list[User]:
    """Return the accounts for a new password by mail, at most ``MOST_ACCOUNTS``.

    They have a password: accounts of a provider and of programs have none.
    """
    if not settings.STATEYARD_PASSWORDS:
        return []
    users = list(PasswordResetForm().get_users(address))
    elsewhere = people.provider_accounts(users)
    return [user for user in users if user.pk not in elsewhere][:MOST_ACCOUNTS]


def _reset(user: User) -> EmailMessage:
    number = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    path = reverse("password-reset-link", args=[number, token])
    lines = [
        f"Somebody asked for a new password of {user.get_username()} on {page_address()}.",
        "",
        "Set it here:",
        f"{page_address()}{path}",
        "",
        (
            f"The link works once, within {settings.PASSWORD_RESET_TIMEOUT // _MINUTES} minutes. If"
            " you did not ask, ignore this mail: nothing has changed."
        ),
    ]
    return EmailMessage("Set a new password", "\n".join(lines), to=[user.email])


def _confirmation(user: User, address: str) -> EmailMessage:
    token = signing.dumps([user.pk, address, user.email], salt=_SALT)
    lines = [
        f"{user.get_username()} gave this address for an account on {page_address()}.",
        "",
        "Confirm it here, signed in with that account:",
        f"{page_address()}{reverse('mail-address', args=[token])}",
        "",
        "The link works for a day. If you did not ask, ignore this mail.",
    ]
    return EmailMessage("Confirm your e-mail address", "\n".join(lines), to=[address])
