"""Metrics: charts, the CloudWatch API, Prometheus, cost."""

from console.feature import Feature

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
    operations={"cloudwatch": "console.features.metrics.operations"},
)
