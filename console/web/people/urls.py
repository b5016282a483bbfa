"""URLs of access keys, and of sign-in by password."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

login_views = ViewModule("console.web.people.login_views")
people_views = ViewModule("console.web.people.people_views")

urlpatterns = [
    path("keys/", people_views.keys_page, name="keys"),
    path("keys/<str:key>/", people_views.change_key, name="key"),
    path("login/", login_views.login_page, name="login"),
    path("login/<str:token>/", login_views.login_link_page, name="login-link"),
    path("password/", login_views.password_page, name="password"),
    path("logout/", login_views.log_out, name="logout"),
]
