"""The addresses of the page Projects."""

from __future__ import annotations

from django.urls import path

from console.features.projects import views

urlpatterns = [
    path("projects/", views.projects_page, name="projects"),
    path("projects/create/", views.create_project, name="project-create"),
    path("projects/rename/", views.rename_project, name="project-rename"),
]
