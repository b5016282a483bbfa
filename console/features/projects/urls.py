"""URLs of the page Projects."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

api_views = ViewModule("console.features.projects.api_views")
views = ViewModule("console.features.projects.views")

urlpatterns = [
    path("projects/", views.projects_page, name="projects"),
    path("projects/create/", views.create_project, name="project-create"),
    path("projects/rename/", views.rename_project, name="project-rename"),
    path("projects/archive/", views.archive_project, name="project-archive"),
    path("projects/unarchive/", views.unarchive_project, name="project-unarchive"),
    path("projects/delete/", views.delete_project, name="project-delete"),
    path("api/projects", api_views.projects, name="api-projects"),
    path("api/projects/<str:project_name>", api_views.project, name="api-project"),
    path("api/projects/<str:project_name>/rename", api_views.rename, name="api-project-rename"),
    path("api/projects/<str:project_name>/archive", api_views.archive, name="api-project-archive"),
    path(
        "api/projects/<str:project_name>/unarchive",
        api_views.unarchive,
        name="api-project-unarchive",
    ),
    path("api/projects/<str:project_name>/delete", api_views.delete, name="api-project-delete"),
]
