"""The forms of people; those of passwords are Django's own."""

from __future__ import annotations

from console.web.core.forms import OptionField, PageForm, TextField

HOURS = {1: "1 hour", 24: "1 day", 168: "7 days"}
"""How long an invitation may be used -> in words."""


class NextForm(PageForm):
    """Where a login leads to. ``unsent``: something was sent without a session, and is lost."""

    next = TextField(strip=False)
    unsent = TextField()


class MemberForm(PageForm):
    """A member and the role they get."""

    name = TextField()
    role = TextField(strip=False)


class InvitationForm(MemberForm):
    """An invitation, and for how many hours it may be used."""

    hours = OptionField(HOURS, 24)


class RemoveMemberForm(PageForm):
    """The member to remove."""

    name = TextField(strip=False)


class KeyForm(PageForm):
    """``act``: ``delete``, ``enable``, ``describe``, or anything else to disable a key."""

    act = TextField(strip=False)
    description = TextField()


class NewKeyForm(PageForm):
    """``member``: the service account whose key it is, "" for one's own.

    ``description``: what uses it.
    """

    member = TextField()
    description = TextField()
