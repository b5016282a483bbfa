"""Forms of approval links."""

from __future__ import annotations

from console.web.core.forms import LINK_HOURS, OptionField, PageForm, PresenceField, TextField


class ApprovalForm(PageForm):
    """The approver's answer by a link."""

    act = TextField(strip=False)
    name = TextField()
    comment = TextField()


class ApprovalLinkForm(PageForm):
    """A new approval link: lifetime in hours, question, whether the input is shown."""

    send = TextField()
    hours = OptionField(LINK_HOURS, 24)
    note = TextField(lines=True)
    show = PresenceField()
