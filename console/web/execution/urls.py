"""URLs of the package execution."""

from __future__ import annotations

from django.urls import path

from console.web.core.addresses import EXECUTION, moved_to
from console.web.execution import (
    execution_views,
    export_views,
    family_views,
    history_views,
    import_views,
    live_views,
    note_views,
    payload_views,
    redrive_views,
    replay_views,
    share_views,
    stop_views,
)

urlpatterns = [
    path(EXECUTION, execution_views.execution_page, name="execution"),
    path(f"{EXECUTION}definition/", execution_views.executed_definition, name="ran-definition"),
    path(f"{EXECUTION}tree/", family_views.family_page, name="family"),
    path(f"{EXECUTION}definition.asl.json", payload_views.definition_text, name="ran-text"),
    path(f"{EXECUTION}_delta", live_views.execution_changes, name="delta"),
    path(f"{EXECUTION}_at", live_views.time_machine_moment, name="moment"),
    path(f"{EXECUTION}_step", live_views.step_panel, name="step"),
    path(f"{EXECUTION}events/", history_views.history_table, name="events"),
    path(f"{EXECUTION}events.csv", history_views.history_csv, name="events-csv"),
    path(f"{EXECUTION}events.json", history_views.history_json, name="events-json"),
    path(f"{EXECUTION}events/<number:number>/", execution_views.event_page, name="event"),
    path(
        f"{EXECUTION}events/<number:number>/<str:field>/",
        payload_views.event_payload,
        name="event-payload",
    ),
    path(f"{EXECUTION}export.json", export_views.execution_json, name="execution-export"),
    path(f"{EXECUTION}graph.svg", export_views.execution_svg, name="execution-svg"),
    path(f"{EXECUTION}outline.txt", share_views.execution_outline, name="outline"),
    path(f"{EXECUTION}share/", share_views.share_page, name="share"),
    path(f"{EXECUTION}<str:field>.json", payload_views.execution_payload, name="payload"),
    path(f"{EXECUTION}stop/", stop_views.stop_page, name="stop"),
    path(f"{EXECUTION}redrive/", redrive_views.redrive_execution, name="redrive"),
    path(f"{EXECUTION}replay/", replay_views.replay_execution, name="replay"),
    path(f"{EXECUTION}note/", note_views.change_note, name="note"),
    path(f"{EXECUTION}remark/", moved_to("note"), name="remark"),
    path("import/", import_views.import_page, name="import"),
    path("import/<number:number>/delete/", import_views.delete_import, name="import-delete"),
    path("shared/<str:token>/<str:kind>", share_views.shared_picture, name="shared"),
]
