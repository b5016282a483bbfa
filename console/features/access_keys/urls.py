"""URLs of access keys, of their rotation and limits, and of service accounts."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

key_views = ViewModule("console.features.access_keys.key_views")
views = ViewModule("console.features.access_keys.views")

urlpatterns = [
    path("keys/", key_views.keys_page, name="keys"),
    path("keys/<str:key>/", key_views.change_key, name="key"),
    path("service-accounts/", views.service_accounts_page, name="service-accounts"),
    path("keys/<str:key>/rotate/", views.rotate_key, name="key-rotate"),
    path("keys/<str:key>/limits/", views.key_limits_page, name="key-limits"),
]
