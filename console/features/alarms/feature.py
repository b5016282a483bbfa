"""Alarms: a metric crosses a threshold, and targets are told."""

from console.feature import Feature

FEATURE = Feature(
    name="alarms",
    urls="console.features.alarms.urls",
    pages={
        "alarms": {"GET": ("ViewPages",)},
        "alarm": {"GET": ("ViewPages",), "POST": ("monitoring:PutMetricAlarm",)},
        "machine-alarms": {
            "GET": ("ViewPages",),
            "POST": ("monitoring:PutMetricAlarm", "monitoring:DeleteAlarms", "events:PutRule"),
        },
    },
    operations={"cloudwatch": "console.features.alarms.operations"},
    jobs="console.features.alarms.jobs",
    needs=("metrics", "notifications"),
)
