"""URLs of sign-in at a provider, and of the page *Sign-in*."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

group_views = ViewModule("console.features.sign_in.group_views")
views = ViewModule("console.features.sign_in.views")

urlpatterns = [
    path("sign-in/", group_views.sign_in_page, name="sign-in"),
    path("sign-in/<str:provider_id>/", views.begin_sign_in, name="provider"),
    path("sign-in/<str:provider_id>/callback/", views.finish_sign_in, name="provider-callback"),
    path("sign-in/<str:provider_id>/logout/", views.end_sessions, name="provider-logout"),
]
