"""Alarms: a metric crosses a threshold, and targets are told."""

from console.feature import Feature, Hook

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
    hooks={
        Hook.ARN_ADDRESS: "console.features.alarms.overview.alarm_address",
        Hook.OVERVIEW_LIVE: "console.features.alarms.overview.live_alarms",
    },
    needs=("metrics", "notifications"),
)
