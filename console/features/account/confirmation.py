"""Check the password and the second factor again before an account is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.hashers import check_password

from console.features.account import second_factor
from console.store.people import login_attempts
from console.web.people.login_views import limited_address

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

_FORMS = "the forms of the second factor"
WRONG_CODE = "The code is not correct, or already used. Wait for the next one."


class Unconfirmed(Exception):
    """The password or code is wrong; has the reason as a sentence, and an HTTP status."""

    def __init__(self, reason: str, status: int = 422) -> None:
        super().__init__(reason)
        self.reason, self.status = reason, status


def confirm_person(request: HttpRequest, user: User, password: str, code: str | None) -> None:
    """Check password and code; raise ``Unconfirmed``.

    ``code``: a code of the authenticator app, or a recovery code; None if the person has no second
    factor.
    """
    try:
        attempt = login_attempts.begin_attempt(
            user.get_username(), limited_address(request), _FORMS
        )
    except login_attempts.TooManyAttempts as locked:
        raise Unconfirmed(wait_words(locked), 429) from None
    if user.has_usable_password() and not check_password(password, user.password):
        attempt.failed()
        raise Unconfirmed("The password is not correct.")
    if code is not None and not second_factor.use_code(user, code):
        attempt.failed()
        raise Unconfirmed(WRONG_CODE)
    attempt.succeeded()


def wait_words(locked: login_attempts.TooManyAttempts) -> str:
    """Return the message for a person who has guessed too often."""
    minutes = -(-locked.seconds // 60)
    return f"Too many wrong codes. Try again in {minutes} minute{'s' * (minutes > 1)}."
