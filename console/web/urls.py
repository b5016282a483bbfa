"""Which address shows what?  Names with an underscore answer with a fragment."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, register_converter

from console.web.bulk import bulk_views
from console.web.core import health_views, preference_views
from console.web.core.numbers import NumberConverter
from console.web.editor import editor_views
from console.web.execution import (
    compare_views,
    execution_views,
    export_views,
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
from console.web.machines import (
    insight_views,
    log_views,
    machine_views,
    settings_views,
    start_views,
    target_views,
    version_views,
)
from console.web.map_runs import map_run_views
from console.web.masking import mask_views
from console.web.metrics import chart_views, prometheus_views
from console.web.overview import overview_views
from console.web.people import invitation_views, login_views, password_views, people_views
from console.web.rules import rule_list_views, rule_views, trigger_views
from console.web.search import failure_views, saved_list_views
from console.web.tasks import activity_views, task_views
from console.web.test_state import test_state_views

register_converter(NumberConverter, "number")
_EXECUTION: list[URLPattern | URLResolver] = [
    path("", execution_views.show, name="execution"),
    path("_delta", live_views.delta, name="delta"),
    path("_at", live_views.moment, name="moment"),
    path("_step", live_views.step, name="step"),
    path("events/", history_views.table, name="events"),
    path("events.csv", history_views.as_csv, name="events-csv"),
    path("events.json", history_views.as_json, name="events-json"),
    path("events/<number:number>/", execution_views.event, name="event"),
    path("events/<number:number>/<str:field>/", payload_views.of_event, name="event-payload"),
    path("export.json", export_views.execution, name="execution-export"),
    path("graph.svg", export_views.graph, name="execution-svg"),
    path("outline.txt", share_views.outline, name="outline"),
    path("share/", share_views.make, name="share"),
    path("scenario.json", export_views.scenario, name="execution-scenario"),
    path("<str:field>.json", payload_views.of_execution, name="payload"),
    path("stop/", stop_views.stop, name="stop"),
    path("tasks/<number:number>/", task_views.answer, name="task"),
    path("map-runs/<number:number>/", map_run_views.show, name="map-run"),
    path("map-runs/<number:number>/_delta", map_run_views.delta, name="map-run-delta"),
    path("redrive/", redrive_views.redrive, name="redrive"),
    path("replay/", replay_views.replay, name="replay"),
    path("reveal/", mask_views.reveal, name="reveal"),
    path("remark/", note_views.change, name="remark"),
]
_MACHINE: list[URLPattern | URLResolver] = [
    path("", machine_views.show, name="machine"),
    path("_new", machine_views.news, name="machine-news"),
    path("definition/", machine_views.definition, name="definition"),
    path("definition.json", export_views.definition, name="download"),
    path("definition.svg", export_views.picture, name="machine-svg"),
    path("definition.mmd", export_views.flowchart, name="machine-mermaid"),
    path("edit/", editor_views.edit, name="edit"),
    path("metrics/", chart_views.machine, name="machine-metrics"),
    path("grid/", insight_views.grid, name="grid"),
    path("insights/", insight_views.insights, name="insights"),
    path("versions/", version_views.show, name="versions"),
    path("diff/", version_views.compare, name="diff"),
    path("logs/", log_views.show, name="machine-logs"),
    path("settings/", settings_views.show, name="machine-settings"),
    path("calls/", target_views.of_machine, name="calls"),
    path("start/", start_views.start, name="start"),
    path("test/", test_state_views.test, name="test"),
    path("delete/", machine_views.delete, name="delete"),
    path("triggers/", trigger_views.show, name="triggers"),
    path("triggers/<number:number>/revoke/", trigger_views.revoke, name="start-link-revoke"),
    path("executions/<str:execution>/", include(_EXECUTION)),
]
urlpatterns = [
    path("", overview_views.show, name="overview"),
    path("_overview", overview_views.pulse, name="pulse"),
    path("machines/", machine_views.every, name="machines"),
    path("machines/new/", editor_views.new, name="new"),
    path("machines/new/_check", editor_views.check, name="check"),
    path("machines/<str:machine>/", include(_MACHINE)),
    path("executions/", execution_views.every, name="executions"),
    path("executions/_new", execution_views.news, name="executions-news"),
    path("executions/views/", saved_list_views.change, name="views"),
    path("executions/views/<number:number>/_count", saved_list_views.count, name="view-count"),
    path("executions/bulk/", bulk_views.bulk, name="bulk"),
    path("executions/bulk/<number:number>/", bulk_views.job, name="bulk-job"),
    path("tasks/", task_views.every, name="tasks"),
    path("activities/", activity_views.every, name="activities"),
    path("activities/<str:activity>/", activity_views.show, name="activity"),
    path("targets/", target_views.show, name="targets"),
    path("compare/", compare_views.compare, name="compare"),
    path("failures/", failure_views.show, name="failures"),
    path("import/", import_views.page, name="import"),
    path("import/<number:number>/delete/", import_views.forget, name="import-forget"),
    path("arn/<path:arn>", overview_views.by_arn, name="arn"),
    path("start/<str:machine>/<str:secret>", trigger_views.start, name="start-link"),
    path("shared/<str:token>/<str:kind>", share_views.shared, name="shared"),
    path("notifications/", rule_list_views.notifications, name="notifications"),
    path("notifications/<number:number>/again/", rule_list_views.send_again, name="send-again"),
    path("schedules/", rule_list_views.schedules, name="schedules"),
    path("rules/<str:rule>/", rule_views.show, name="rule"),
    path("rules/<str:rule>/switch/", rule_views.switch, name="rule-switch"),
    path("rules/<str:rule>/delete/", rule_views.delete, name="rule-delete"),
    path("rules/<str:rule>/targets/", rule_views.add_target, name="target-add"),
    path("rules/<str:rule>/targets/remove/", rule_views.remove_target, name="target-remove"),
    path("team/", people_views.members, name="team"),
    path("team/remove/", people_views.remove, name="team-remove"),
    path("team/invite/", people_views.invite, name="invite"),
    path("team/invitations/<number:number>/revoke/", people_views.revoke, name="invitation-revoke"),
    path("keys/", people_views.keys, name="keys"),
    path("keys/<str:key>/", people_views.change_key, name="key"),
    path("audit/", people_views.audit, name="audit"),
    path("settings/", mask_views.settings, name="project-settings"),
    path("charts/", chart_views.show, name="charts"),
    path("charts/_delta", chart_views.delta, name="charts-delta"),
    path("charts/executions/", chart_views.behind, name="behind"),
    path("charts.csv", chart_views.download, name="charts-csv"),
    path("metrics", prometheus_views.metrics, name="prometheus"),
    path("healthz", health_views.alive, name="healthz"),
    path("readyz", health_views.ready, name="readyz"),
    path("preferences/", preference_views.save, name="preferences"),
    path("preferences/columns/", preference_views.choose, name="columns"),
    path("login/", login_views.form, name="login"),
    path("login/<str:token>/", login_views.link, name="login-link"),
    path("invitation/<str:token>/", invitation_views.accept, name="invitation"),
    path("password/", password_views.change, name="password"),
    path("logout/", login_views.leave, name="logout"),
]
