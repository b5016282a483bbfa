"""Delete the private data of a closed account, so that a later one of its name starts empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.account import mails, second_factor

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def forget_closed_account(user: User) -> None:
    """Delete second factor and mail address of an account (inside a transaction)."""
    second_factor.forget_closed_account(user)
    mails.forget_address(user)
