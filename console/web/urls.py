"""Which address shows what?  Names with an underscore answer with a fragment."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from console.web.views import (
    charts,
    editor,
    executions,
    history,
    imports,
    live,
    login,
    machines,
    overview,
    payloads,
    people,
    preferences,
    prometheus,
    redrive,
    start,
    stop,
)

_EXECUTION: list[URLPattern | URLResolver] = [
    path("", executions.show, name="execution"),
    path("_delta", live.delta, name="delta"),
    path("_at", live.moment, name="moment"),
    path("_step", live.step, name="step"),
    path("events/", history.table, name="events"),
    path("events.csv", history.as_csv, name="events-csv"),
    path("events.json", history.as_json, name="events-json"),
    path("events/<int:number>/", executions.event, name="event"),
    path("events/<int:number>/<str:field>/", payloads.of_event, name="event-payload"),
    path("<str:field>.json", payloads.of_execution, name="payload"),
    path("stop/", stop.stop, name="stop"),
    path("redrive/", redrive.redrive, name="redrive"),
]
_MACHINE: list[URLPattern | URLResolver] = [
    path("", machines.show, name="machine"),
    path("_new", machines.news, name="machine-news"),
    path("definition/", machines.definition, name="definition"),
    path("definition.json", machines.download, name="download"),
    path("edit/", editor.edit, name="edit"),
    path("metrics/", charts.machine, name="machine-metrics"),
    path("start/", start.start, name="start"),
    path("delete/", machines.delete, name="delete"),
    path("executions/<str:execution>/", include(_EXECUTION)),
]
urlpatterns = [
    path("", overview.show, name="overview"),
    path("_overview", overview.pulse, name="pulse"),
    path("machines/", machines.every, name="machines"),
    path("machines/new/", editor.new, name="new"),
    path("machines/new/_check", editor.check, name="check"),
    path("machines/<str:machine>/", include(_MACHINE)),
    path("executions/", executions.every, name="executions"),
    path("executions/_new", executions.news, name="executions-news"),
    path("import/", imports.page, name="import"),
    path("import/<int:number>/delete/", imports.forget, name="import-forget"),
    path("arn/<path:arn>", overview.by_arn, name="arn"),
    path("team/", people.members, name="team"),
    path("team/remove/", people.remove, name="team-remove"),
    path("keys/", people.keys, name="keys"),
    path("keys/<str:key>/", people.change_key, name="key"),
    path("audit/", people.audit, name="audit"),
    path("charts/", charts.show, name="charts"),
    path("charts/_delta", charts.delta, name="charts-delta"),
    path("charts/executions/", charts.behind, name="behind"),
    path("charts.csv", charts.download, name="charts-csv"),
    path("metrics", prometheus.metrics, name="prometheus"),
    path("preferences/", preferences.save, name="preferences"),
    path("login/", login.form, name="login"),
    path("login/<str:token>/", login.link, name="login-link"),
    path("logout/", login.leave, name="logout"),
]
