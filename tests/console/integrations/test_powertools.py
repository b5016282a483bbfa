"""The decorators of aws-lambda-powertools work in a Python callable that a Task calls."""

from __future__ import annotations

import json
import sys
from typing import Any

import boto3
import pytest
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, idempotent
from moto import mock_aws

from console.integrations.outcome import Succeeded
from tests.console.integrations.test_lambda_runtime import ARN, called

pytestmark = pytest.mark.slow  # the packages are in the extra test-full
logger = Logger(service="tests")


@logger.inject_lambda_context(log_event=True)
def log_with_powertools(event: Any, _: Any) -> Any:
    """Log a line, as users of the package do."""
    logger.info("working")
    return event


def test_the_logger_of_powertools_works(capsys: pytest.CaptureFixture[str]) -> None:
    """Its decorator reads five members of the context."""
    handler = logger.registered_handler
    handler.setStream(sys.stdout)  # type: ignore[attr-defined]
    assert called(f"{__name__}:log_with_powertools", 5) == Succeeded("5")
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert line["message"] == "working"
    assert line["function_arn"] == ARN
    assert line["function_memory_size"] == "128"


def test_tracer_and_idempotency_of_powertools_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call gets the answer of the first, out of a table of DynamoDB."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    calls = []

    def count(event: Any, _: Any) -> Any:
        calls.append(event)
        return len(calls)

    with mock_aws():
        session = boto3.Session(region_name="us-east-1")
        key = {"AttributeName": "id"}
        session.client("dynamodb").create_table(
            TableName="calls",
            KeySchema=[{**key, "KeyType": "HASH"}],
            AttributeDefinitions=[{**key, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        layer = DynamoDBPersistenceLayer(table_name="calls", boto3_session=session)
        once: Any = idempotent(persistence_store=layer)(count)
        traced = Tracer(service="tests").capture_lambda_handler(once)
        monkeypatch.setattr(sys.modules[__name__], "work", traced, raising=False)
        outcomes = [called(f"{__name__}:work", event) for event in ({"n": 1}, {"n": 1}, {"n": 2})]
    assert outcomes == [Succeeded("1"), Succeeded("1"), Succeeded("2")]
    assert calls == [{"n": 1}, {"n": 2}]
