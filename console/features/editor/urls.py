"""The addresses of the feature editor."""

from __future__ import annotations

from django.urls import path

from console.features.editor import graph_views, views
from console.web.core.addresses import MACHINE

urlpatterns = [
    path("machines/new/", views.new_machine, name="new"),
    path("machines/new/_check", views.check_definition, name="check"),
    path("machines/new/_edit", graph_views.edit_graph, name="edit-graph"),
    path("machines/new/_draft", views.keep_new_draft, name="new-draft"),
    path(f"{MACHINE}edit/_draft", views.keep_draft, name="draft"),
    path(f"{MACHINE}edit/_changes", views.show_changes, name="changes"),
    path(f"{MACHINE}edit/", views.edit_machine, name="edit"),
]
