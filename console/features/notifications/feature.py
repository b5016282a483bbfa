"""Notifications: rules, schedules, their targets and deliveries."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="notifications",
    urls="console.features.notifications.web.urls",
    pages={
        "start-link": {"POST": ("anybody",)},
        "schedule-times": {"GET": ("ViewPages",)},
        "triggers": {"GET": ("ViewPages",), "POST": ("CreateStartLink",)},
        "start-link-revoke": {"POST": ("RevokeStartLink",)},
        "notifications": {"GET": ("ViewPages",), "POST": ("events:PutRule",)},
        "send-again": {"POST": ("events:SendAgain",)},
        "send-all-again": {"GET": ("events:SendAgain",), "POST": ("events:SendAgain",)},
        "dead-letters-delete": {
            "GET": ("events:DeleteDeadLetters",),
            "POST": ("events:DeleteDeadLetters",),
        },
        "schedules": {"GET": ("ViewPages",), "POST": ("events:PutRule",)},
        "rule": {"GET": ("ViewPages",), "POST": ("events:PutRule",)},
        "schedule": {"GET": ("ViewPages",), "POST": ("scheduler:UpdateSchedule",)},
        "schedule-switch": {"POST": ("scheduler:UpdateSchedule",)},
        "schedule-delete": {
            "GET": ("scheduler:DeleteSchedule",),
            "POST": ("scheduler:DeleteSchedule",),
        },
        "rule-switch": {"POST": ("events:EnableRule", "events:DisableRule")},
        "rule-delete": {"GET": ("events:DeleteRule",), "POST": ("events:DeleteRule",)},
        "target-add": {"POST": ("events:PutTargets",)},
        "target-remove": {"POST": ("events:RemoveTargets",)},
        "target-test": {"POST": ("events:SendTest",)},
        "rule-run": {"POST": ("events:RunSchedule",)},
        "schedule-run": {"POST": ("events:RunSchedule",)},
    },
    hooks={Hook.ARN_ADDRESS: "console.features.notifications.web.arn_addresses.arn_address"},
)
