"""Metrics: charts, CloudWatch API, Prometheus, cost estimates."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="metrics",
    urls="console.features.metrics.web.urls",
    pages={
        "charts": {"GET": ("ViewPages",)},
        "chart-executions": {"GET": ("ViewPages",)},
        "charts-csv": {"GET": ("ViewPages",)},
        "charts-delta": {"GET": ("ViewPages",)},
        "machine-metrics": {"GET": ("ViewPages",)},
        "prometheus": {"GET": ("anybody",)},
    },
    rights={
        "viewer": (
            "monitoring:GetMetricData",
            "monitoring:GetMetricStatistics",
            "monitoring:ListMetrics",
        ),
    },
    parameters={
        "charts-csv": ("from", "group", "machine", "period", "range", "region", "statistic", "to"),
        "prometheus": (),
    },
    operations={"cloudwatch": "console.features.metrics.operations"},
    jobs="console.features.metrics.jobs",
    hooks={
        Hook.EXECUTION_PAGE: "console.features.metrics.family_cost.execution_page",
        Hook.BEFORE_PRUNING: "console.features.metrics.rollups.sum_up",
        Hook.NEEDED_SINCE: "console.features.metrics.rollups.summed_until",
        Hook.OVERVIEW: "console.features.metrics.web.charts.overview_context",
        Hook.METRICS_PORT: "console.features.metrics.port.serve_metrics",
    },
)
