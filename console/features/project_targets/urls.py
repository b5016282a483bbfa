"""URLs of a project's targets, which receive the calls of its Tasks."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.project_targets.views")

urlpatterns = [
    path("settings/targets/", views.targets_page, name="own-targets"),
    path("settings/targets/remove/", views.remove_target, name="own-target-remove"),
    path("settings/targets/test/", views.test_target, name="own-target-test"),
    path("settings/targets/edit/<str:kind>/", views.edit_target, name="own-target"),
]
