"""Declare the feature: the page of members, and invitations by a link."""

from console.feature import Feature

FEATURE = Feature(
    name="members",
    urls="console.features.members.urls",
    pages={
        "members": {"GET": ("ViewPages",), "POST": ("PutMember",)},
        "members-former": {"GET": ("ViewPages",)},
        "member-remove": {"POST": ("RemoveMember",)},
        "invite": {"GET": ("CreateInvitation",), "POST": ("CreateInvitation",)},
        "invitation-revoke": {"POST": ("RevokeInvitation",)},
        "invitation": {"GET": ("anybody",), "POST": ("anybody",)},  # the token is the right
    },
    rights={"owner": ("CreateInvitation", "RevokeInvitation")},
)
