"""Logs: CloudWatch Logs of executions and of Lambda functions."""

from console.feature import Feature, Hook, Subcommand

FEATURE = Feature(
    name="logs",
    urls="console.features.logs.urls",
    pages={
        "machine-logs": {"GET": ("ViewPages",)},
    },
    rights={
        "viewer": (
            "logs:DescribeLogGroups",
            "logs:DescribeLogStreams",
            "logs:FilterLogEvents",
            "logs:GetLogEvents",
        ),
        "editor": (
            "logs:CreateLogGroup",
            "logs:DeleteLogGroup",
        ),
    },
    operations={"logs": "console.features.logs.operations"},
    jobs="console.features.logs.jobs",
    hooks={
        Hook.FUNCTION_CALLED: "console.features.logs.function_log_writer.add_log",
        Hook.FUNCTION_LOGS: "console.features.logs.shown_calls.shown_calls",
        Hook.WORKER_STOPPED: "console.features.logs.function_log_writer.flush_logs",
    },
    commands={
        "logs": Subcommand(
            "Talk to a server",
            "show the events of executions, and what their functions print",
            "console.features.logs.cli",
        ),
    },
)
