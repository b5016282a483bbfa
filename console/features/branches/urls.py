"""URLs of branches: temporary copies of a project for branches of a git repository."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

api_views = ViewModule("console.features.branches.api_views")
views = ViewModule("console.features.branches.views")

urlpatterns = [
    path("projects/branches/delete/", views.delete_branch, name="branch-delete"),
    path("api/branches", api_views.branches, name="api-branches"),
    path("api/branches/key", api_views.branch_key, name="api-branch-key"),
    path("api/branches/failures", api_views.failures, name="api-branch-failures"),
    path("api/branches/delete", api_views.delete, name="api-branch-delete"),
    path("api/branches/machines", api_views.describe_machines, name="api-branch-machines"),
    path("api/branches/deploy", api_views.deploy_machines, name="api-branch-deploy"),
]
