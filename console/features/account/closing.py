"""Close an account: whoever is added again under its name begins anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.account import mails, second_factor

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def forget_closed_account(user: User) -> None:
    """Take second factor and e-mail address away with the account (inside a transaction)."""
    second_factor.forget_closed_account(user)
    mails.forget_address(user)
