"""URLs of metrics: charts, the executions of a bar, CSV and Prometheus."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

chart_views = ViewModule("console.features.metrics.web.chart_views")
prometheus_views = ViewModule("console.features.metrics.web.prometheus_views")

urlpatterns = [
    path(f"{MACHINE}metrics/", chart_views.machine_charts, name="machine-metrics"),
    path("charts/", chart_views.charts_page, name="charts"),
    path("charts/_delta", chart_views.charts_changes, name="charts-delta"),
    path("charts/executions/", chart_views.chart_executions, name="chart-executions"),
    path("charts.csv", chart_views.charts_csv, name="charts-csv"),
    path("metrics", prometheus_views.prometheus_metrics, name="prometheus"),
]
