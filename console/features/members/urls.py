"""URLs of members and invitations."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from console.feature import ViewModule

invitation_views = ViewModule("console.features.members.invitation_views")
views = ViewModule("console.features.members.views")

urlpatterns = [
    path("members/", views.members_page, name="members"),
    # the page's address until 0.3.0, for bookmarks; it goes with 0.5.0
    path("team/", RedirectView.as_view(pattern_name="members"), name="members-former"),
    path("members/remove/", views.remove_member, name="member-remove"),
    path("members/invite/", views.invite_member, name="invite"),
    path(
        "members/invitations/<number:number>/revoke/",
        views.revoke_invitation,
        name="invitation-revoke",
    ),
    path("invitation/<str:token>/", invitation_views.invitation_page, name="invitation"),
]
