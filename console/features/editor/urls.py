"""URLs of the editor, which creates and changes definitions of state machines."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

graph_views = ViewModule("console.features.editor.graph_views")
views = ViewModule("console.features.editor.views")

urlpatterns = [
    path("machines/new/", views.new_machine, name="new"),
    path("machines/new/_check", views.check_definition, name="check"),
    path("machines/new/_edit", graph_views.edit_graph, name="edit-graph"),
    path("machines/new/_draft", views.keep_new_draft, name="new-draft"),
    path(f"{MACHINE}edit/_draft", views.keep_draft, name="draft"),
    path(f"{MACHINE}edit/_changes", views.show_changes, name="changes"),
    path(f"{MACHINE}edit/", views.edit_machine, name="edit"),
]
