"""Metrics: charts, the CloudWatch API, Prometheus, cost."""

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
    hooks={
        Hook.EXECUTION_PAGE: "console.features.metrics.family_cost.cost_context",
        Hook.OVERVIEW: "console.features.metrics.web.charts.overview_context",
    },
)
