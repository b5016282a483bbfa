"""The forms of approvals by a link."""

from __future__ import annotations

from console.features.approvals.store import HOURS
from console.web.core.forms import OptionField, PageForm, PresenceField, TextField


class ApprovalForm(PageForm):
    """The answer of somebody who has a link."""

    act = TextField(strip=False)
    name = TextField()
    comment = TextField()


class ApprovalLinkForm(PageForm):
    """The form for a new approval link: hours of validity, question, show the input or not.

    ``send``: the number of the target of a notification that gets it, "" for none.
    """

    send = TextField()
    hours = OptionField(HOURS, 24)
    note = TextField(lines=True)
    show = PresenceField()
