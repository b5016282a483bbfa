"""Forms of the page of members."""

from __future__ import annotations

from console.web.core.forms import LINK_HOURS, OptionField, PageForm, TextField


class MemberForm(PageForm):
    """A member and the role they get."""

    name = TextField()
    role = TextField(strip=False)


class InvitationForm(MemberForm):
    """An invitation with its lifetime in hours."""

    hours = OptionField(LINK_HOURS, 24)


class RemoveMemberForm(PageForm):
    """The member to remove."""

    name = TextField(strip=False)
