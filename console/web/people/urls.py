"""URLs of sign-in by password."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

login_views = ViewModule("console.web.people.login_views")

urlpatterns = [
    path("login/", login_views.login_page, name="login"),
    path("login/<str:token>/", login_views.login_link_page, name="login-link"),
    path("password/", login_views.password_page, name="password"),
    path("logout/", login_views.log_out, name="logout"),
]
