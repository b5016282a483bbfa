"""URLs of a project's settings."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

api_views = ViewModule("console.features.project_settings.api_views")
file_views = ViewModule("console.features.project_settings.file_views")
views = ViewModule("console.features.project_settings.views")

urlpatterns = [
    path("settings/quotas/", views.quotas_page, name="quotas"),
    path("settings/denied-actions/", views.denied_actions_page, name="denied-actions"),
    path("settings/retention/", views.retention_page, name="retention"),
    path("settings/mocks/", views.mocks_page, name="mocks"),
    path("settings/file/", file_views.settings_file_page, name="settings-file"),
    path("settings/file/export/", file_views.settings_download, name="settings-export"),
    path("api/settings", api_views.project_settings, name="api-settings"),
]
