"""URLs of the feature metrics."""

from __future__ import annotations

from django.urls import path

from console.features.metrics.web import chart_views, prometheus_views
from console.web.core.addresses import MACHINE

urlpatterns = [
    path(f"{MACHINE}metrics/", chart_views.machine_charts, name="machine-metrics"),
    path("charts/", chart_views.charts_page, name="charts"),
    path("charts/_delta", chart_views.charts_changes, name="charts-delta"),
    path("charts/executions/", chart_views.chart_executions, name="chart-executions"),
    path("charts.csv", chart_views.charts_csv, name="charts-csv"),
    path("metrics", prometheus_views.prometheus_metrics, name="prometheus"),
]
