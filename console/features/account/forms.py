"""Forms of a person's own account."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class SecondFactorForm(PageForm):
    """``act``: ``on``, ``off`` or ``codes``; a code, and the current password to confirm."""

    act = TextField(strip=False)
    code = TextField(cut=40)
    password = TextField(strip=False)


class CodeForm(PageForm):
    """The code of the second factor at sign-in."""

    code = TextField(cut=40)


class RequirementForm(PageForm):
    """Whether a project requires a second factor: ``on``; other values mean no."""

    required = TextField(strip=False)


class MailAddressForm(PageForm):
    """A mail address, "" for none, with the current password and a code."""

    address = TextField(cut=254)
    code = TextField(cut=40)
    password = TextField(strip=False)
