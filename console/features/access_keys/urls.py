"""URLs of service accounts, and of the rotation and limits of access keys."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.access_keys.views")

urlpatterns = [
    path("service-accounts/", views.service_accounts_page, name="service-accounts"),
    path("keys/<str:key>/rotate/", views.rotate_key, name="key-rotate"),
    path("keys/<str:key>/limits/", views.key_limits_page, name="key-limits"),
]
