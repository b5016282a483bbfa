"""State machines with one weakness each, and some without any."""

from __future__ import annotations

import json
from typing import Any

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:charge"
THROTTLED = {"ErrorEquals": ["Lambda.TooManyRequestsException"], "MaxAttempts": 5}
KEEPING = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Failed"}
FAILED = {"Type": "Fail", "Error": "Failed"}
DONE = {"Type": "Succeed"}


def machine(charge: dict[str, Any], more: dict[str, Any] | None = None, **top: Any) -> Any:
    """Return a machine whose Task Charge has no weakness but those that are given."""
    state = {
        "Type": "Task",
        "Resource": FUNCTION,
        "TimeoutSeconds": 20,
        "Retry": [THROTTLED],
        "Catch": [KEEPING],
        "Next": "Done",
        **charge,
    }
    states = {"Charge": state, "Failed": FAILED, "Done": DONE, **(more or {})}
    led_to = json.dumps(states)
    used = {name: each for name, each in states.items() if f'"Next": "{name}"' in led_to}
    return {"StartAt": "Charge", "States": {"Charge": states["Charge"], **used}, **top}


def service(resource: str, parameters: dict[str, Any], *errors: str) -> dict[str, Any]:
    """Return fields of a Task that calls a service."""
    retriers = [{"ErrorEquals": [error], "MaxAttempts": 2} for error in errors]
    arn = f"arn:aws:states:::{resource}"
    return {"Resource": arn, "Parameters": parameters, "Retry": retriers}


QUEUE = {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/q", "MessageBody": "m"}
TOKEN = {"FunctionName": "ask", "Payload": {"token.$": "$$.Task.Token"}}
JSONATA = {
    "Type": "Task",
    "Resource": FUNCTION,
    "TimeoutSeconds": 20,
    "Retry": [THROTTLED],
    "QueryLanguage": "JSONata",
    "Next": "Done",
}
REFUND = {
    "Type": "Task",
    "Resource": FUNCTION,
    "Parameters": {"order.$": "$.order.id"},
    "Retry": [THROTTLED],
    "Next": "Failed",
}

WEAK: dict[str, tuple[str, Any]] = {
    "no Retry on throttling": (
        "no-retry-on-throttling",
        machine({"Retry": [{"ErrorEquals": ["States.Timeout"]}]}),
    ),
    "a Catcher loses the input that its next state reads": (
        "catch-loses-input",
        machine({"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Refund"}]}, {"Refund": REFUND}),
    ),
    "a Catcher swallows every error and loses the input": (
        "catch-loses-input",
        machine({"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Done"}]}),
    ),
    "a Catcher of JSONata has no Output": (
        "catch-loses-input",
        machine(
            {},
            {"Charge": {**JSONATA, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Done"}]}},
        ),
    ),
    "a retry of a call that is not idempotent": (
        "retry-not-idempotent",
        machine(service("sqs:sendMessage", QUEUE, "States.TaskFailed")),
    ),
    "a retry of a Parallel repeats such a call": (
        "retry-not-idempotent",
        machine(
            {},
            {
                "Charge": {
                    "Type": "Parallel",
                    "Branches": [
                        {
                            "StartAt": "Send",
                            "States": {
                                "Send": {
                                    "Type": "Task",
                                    **service("sqs:sendMessage", QUEUE, "Sqs.ThrottlingException"),
                                    "End": True,
                                }
                            },
                        }
                    ],
                    "Retry": [{"ErrorEquals": ["States.ALL"]}],
                    "Catch": [KEEPING],
                    "Next": "Done",
                }
            },
        ),
    ),
    "backoff past TimeoutSeconds": (
        "backoff-past-timeout",
        machine({"Retry": [{**THROTTLED, "IntervalSeconds": 10}]}, TimeoutSeconds=60),
    ),
    "a Retrier after States.ALL": (
        "retrier-unreachable",
        machine({"Retry": [{"ErrorEquals": ["States.ALL"]}, THROTTLED]}),
    ),
    "a Retrier whose error an earlier one takes": (
        "retrier-unreachable",
        machine({"Retry": [{"ErrorEquals": ["States.TaskFailed"]}, THROTTLED]}),
    ),
    "a Catcher whose errors an earlier one takes": (
        "catcher-unreachable",
        machine(
            {
                "Catch": [
                    {**KEEPING, "ErrorEquals": ["States.TaskFailed", "States.Timeout"]},
                    {**KEEPING, "ErrorEquals": ["CardDeclined"]},
                ]
            }
        ),
    ),
    "MaxAttempts 0": (
        "retry-never",
        machine({"Retry": [THROTTLED, {"ErrorEquals": ["Declined"], "MaxAttempts": 0}]}),
    ),
    "a callback without a time limit": (
        "callback-never-ends",
        {
            "StartAt": "Charge",
            "States": {
                "Charge": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
                    "Parameters": TOKEN,
                    "Retry": [THROTTLED],
                    "End": True,
                }
            },
        },
    ),
    "a timeout that the Catcher does not take": (
        "timeout-not-caught",
        machine({"Catch": [{**KEEPING, "ErrorEquals": ["States.TaskFailed"]}]}),
    ),
    "a Catcher that leads back for ever": (
        "catch-endless",
        machine(
            {"Catch": [{**KEEPING, "Next": "Pause"}]},
            {"Pause": {"Type": "Wait", "Seconds": 5, "Next": "Charge"}},
        ),
    ),
    "retries of months": (
        "retry-endless",
        machine({"Retry": [{**THROTTLED, "IntervalSeconds": 60, "MaxAttempts": 20}]}),
    ),
}
"""Name -> the code of the one weakness, and the machine."""

NESTED = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.orders",
            "ItemProcessor": {
                "StartAt": "Both",
                "States": {
                    "Both": {
                        "Type": "Parallel",
                        "Branches": [
                            {
                                "StartAt": "Left",
                                "States": {
                                    "Left": {
                                        "Type": "Task",
                                        "Resource": FUNCTION,
                                        "Parameters": {"id.$": "$.deep.id"},
                                        "Retry": [
                                            THROTTLED,
                                            {"ErrorEquals": ["States.Timeout", "Busy"]},
                                        ],
                                        "End": True,
                                    }
                                },
                            },
                        ],
                        "Retry": [{"ErrorEquals": ["Rare"], "MaxAttempts": 1}],
                        "Catch": [
                            {
                                "ErrorEquals": ["Rare", "Busy"],
                                "ResultPath": "$.error",
                                "Next": "Lost",
                            }
                        ],
                        "End": True,
                    },
                    "Lost": {"Type": "Fail", "Error": "Lost"},
                },
            },
            "Retry": [{"ErrorEquals": ["Lost"], "MaxAttempts": 2, "JitterStrategy": "FULL"}],
            "Catch": [KEEPING],
            "Next": "Done",
        },
        "Failed": FAILED,
        "Done": DONE,
    },
}
DISTRIBUTED = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:getObject",
                "ReaderConfig": {"InputType": "JSON"},
                "Parameters": {"Bucket": "b", "Key.$": "$.key"},
            },
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "Left",
                "States": {
                    "Left": {
                        "Type": "Task",
                        "Resource": FUNCTION,
                        "Retry": [THROTTLED],
                        "End": True,
                    }
                },
            },
            "Retry": [{"ErrorEquals": ["States.ItemReaderFailed"]}],
            "Catch": [
                {**KEEPING, "ErrorEquals": ["States.ExceedToleratedFailureThreshold"]},
                KEEPING,
            ],
            "Next": "Done",
        },
        "Failed": FAILED,
        "Done": DONE,
    },
}
WELL_MADE: dict[str, Any] = {
    "a Task": machine({}),
    "an exclusion from a wildcard": machine(
        {
            "Retry": [
                {"ErrorEquals": ["Declined"], "MaxAttempts": 0},
                {"ErrorEquals": ["States.ALL"], "MaxAttempts": 2, "MaxDelaySeconds": 30},
            ]
        }
    ),
    "a message with its own number": machine(
        service(
            "sqs:sendMessage",
            {**QUEUE, "MessageGroupId": "g", "MessageDeduplicationId.$": "$.id"},
            "States.ALL",
        )
    ),
    "a start with a name": machine(
        service(
            "states:startExecution",
            {
                "StateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:m",
                "Name.$": "$.id",
            },
            "States.ALL",
        )
    ),
    "a callback with a time limit": machine(
        {
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "Parameters": TOKEN,
            "HeartbeatSeconds": 5,
        }
    ),
    "a Catcher that tells of the error and fails": machine(
        {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Tell"}]},
        {
            "Tell": {
                "Type": "Task",
                **service(
                    "sns:publish",
                    {
                        "TopicArn": "arn:aws:sns:us-east-1:123456789012:t",
                        "Message.$": "States.Format('{} {}', $.Error, $.Cause)",
                    },
                    "SNS.ThrottledException",
                ),
                "Next": "Failed",
            }
        },
    ),
    "JSONata": machine(
        {},
        {
            "Charge": {
                **JSONATA,
                "Catch": [
                    {
                        "ErrorEquals": ["States.ALL"],
                        "Output": "{% $merge([$states.input, $states.errorOutput]) %}",
                        "Next": "Done",
                    }
                ],
            }
        },
    ),
    "a poll": machine(
        {"Catch": [{**KEEPING, "ErrorEquals": ["NotReady"], "Next": "Pause"}, KEEPING]},
        {"Pause": {"Type": "Wait", "Seconds": 5, "Next": "Charge"}},
    ),
    "states in states": NESTED,
    "a distributed Map": DISTRIBUTED,
}
