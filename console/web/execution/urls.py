"""URLs of an execution: its page, definition, history, and actions on it."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION, moved_to

views = ViewModule("console.web.execution.views")
live_views = ViewModule("console.web.execution.live_views")
action_views = ViewModule("console.web.execution.action_views")

urlpatterns = [
    path(EXECUTION, views.execution_page, name="execution"),
    path(f"{EXECUTION}definition/", views.executed_definition, name="ran-definition"),
    path(f"{EXECUTION}definition.asl.json", views.executed_text, name="ran-text"),
    path(f"{EXECUTION}_delta", live_views.execution_changes, name="delta"),
    path(f"{EXECUTION}_at", live_views.time_machine_moment, name="moment"),
    path(f"{EXECUTION}_step", live_views.step_panel, name="step"),
    path(f"{EXECUTION}events/", views.history_table, name="events"),
    path(f"{EXECUTION}events/<number:number>/", views.event_page, name="event"),
    path(
        f"{EXECUTION}events/<number:number>/<str:field>/",
        views.event_payload,
        name="event-payload",
    ),
    path(f"{EXECUTION}<str:field>.json", views.execution_payload, name="payload"),
    path(f"{EXECUTION}stop/", action_views.stop_page, name="stop"),
    path(f"{EXECUTION}redrive/", action_views.redrive_execution, name="redrive"),
    path(f"{EXECUTION}note/", action_views.change_note, name="note"),
    path(f"{EXECUTION}remark/", moved_to("note"), name="remark"),
]
