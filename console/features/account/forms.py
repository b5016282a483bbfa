"""The forms of one's own account."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class SecondFactorForm(PageForm):
    """``act``: ``on``, ``off`` or ``codes``; a code, and the current password to go on."""

    act = TextField(strip=False)
    code = TextField(cut=40)
    password = TextField(strip=False)


class CodeForm(PageForm):
    """The code at the sign-in."""

    code = TextField(cut=40)


class RequirementForm(PageForm):
    """Whether the members of a project need a second factor: ``on`` or anything else."""

    required = TextField(strip=False)


class MailAddressForm(PageForm):
    """An e-mail address, "" to have none, with the current password and a code."""

    address = TextField(cut=254)
    code = TextField(cut=40)
    password = TextField(strip=False)
