"""URLs of members, access keys, and sign-in by password."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from console.feature import ViewModule

login_views = ViewModule("console.web.people.login_views")
people_views = ViewModule("console.web.people.people_views")

urlpatterns = [
    path("members/", people_views.members_page, name="members"),
    # the page's address until 0.3.0, for bookmarks; it goes with 0.5.0
    path("team/", RedirectView.as_view(pattern_name="members"), name="members-former"),
    path("members/remove/", people_views.remove_member, name="member-remove"),
    path("members/invite/", people_views.invite_member, name="invite"),
    path(
        "members/invitations/<number:number>/revoke/",
        people_views.revoke_invitation,
        name="invitation-revoke",
    ),
    path("keys/", people_views.keys_page, name="keys"),
    path("keys/<str:key>/", people_views.change_key, name="key"),
    path("login/", login_views.login_page, name="login"),
    path("login/<str:token>/", login_views.login_link_page, name="login-link"),
    path("invitation/<str:token>/", login_views.invitation_page, name="invitation"),
    path("password/", login_views.password_page, name="password"),
    path("logout/", login_views.log_out, name="logout"),
]
