"""The addresses of the room people."""

from __future__ import annotations

from django.urls import path

from console.web.people import audit_views, login_views, people_views

urlpatterns = [
    path("team/", people_views.team_page, name="team"),
    path("team/remove/", people_views.remove_member, name="team-remove"),
    path("team/invite/", people_views.invite_member, name="invite"),
    path(
        "team/invitations/<number:number>/revoke/",
        people_views.revoke_invitation,
        name="invitation-revoke",
    ),
    path("keys/", people_views.keys_page, name="keys"),
    path("keys/<str:key>/", people_views.change_key, name="key"),
    path("audit/", audit_views.audit_page, name="audit"),
    path("audit.csv", audit_views.audit_csv, name="audit-csv"),
    path("login/", login_views.login_page, name="login"),
    path("login/<str:token>/", login_views.login_link_page, name="login-link"),
    path("invitation/<str:token>/", login_views.invitation_page, name="invitation"),
    path("password/", login_views.password_page, name="password"),
    path("logout/", login_views.log_out, name="logout"),
]
