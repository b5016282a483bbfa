"""Alarms: notify targets when a metric crosses a threshold."""

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
    rights={
        "viewer": (
            "monitoring:DescribeAlarms",
            "monitoring:DescribeAlarmsForMetric",
        ),
        "editor": (
            "monitoring:DeleteAlarms",
            "monitoring:PutMetricAlarm",
            "monitoring:SetAlarmState",
        ),
    },
    hooks={
        Hook.ARN_ADDRESS: "console.features.alarms.alarm_display.alarm_address",
        Hook.ARN_OBJECTS: "console.features.alarms.alarm_display.alarms_with_arns",
        Hook.MACHINE_ALARMS: "console.features.alarms.alarm_display.newest_alarm",
        Hook.MACHINE_ROWS: "console.features.alarms.alarm_display.machines_with_alarms",
        Hook.OVERVIEW_LIVE: "console.features.alarms.alarm_display.overview_live",
    },
    operations={"cloudwatch": "console.features.alarms.operations"},
    jobs="console.features.alarms.jobs",
    needs=("metrics", "notifications"),
)
