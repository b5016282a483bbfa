"""Recorded cases that need other services pass with moto and small functions as targets."""

from __future__ import annotations

import collections
import concurrent.futures
import copy
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.aws import KEYS, Moto
from tests.acceptance.server import Server
from tests.conformance import cases
from tests.conformance.lambdas import Lambdas

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
NEEDS = {
    *("lambda", "sqs", "sns", "events", "secretsmanager", "self:aws-sdk:sfn", "dynamodb", "logs")
}
ANY = "<whatever the service says>"
# What differs is the recorder's account, or what moto answers in a service's place.
OUT_OF_REACH = {
    r"error_handling/test_aws_sdk/test_no_such_bucket": "the bucket's name is cut in the recording",
    r"test_send_message_no_such_queue": "the queue's host does not exist; moto answers for it",
    r"DYNAMODB_PUT_UPDATE_GET_ITEM": "moto answers ConsumedCapacity unasked",
    r"task_service_lambda/test_no_such_function": "moto names the function without its version",
    r"test_fifo_message_attribute\[input_params0-True\]": "moto asks for the MessageGroupId in "
    "other words",
    r"test_sns_publish_wait_for_task_token": "somebody outside has to send the outcome",
    r"callback/.*no_error_field\[SQS_WAIT_FOR_TASK_TOKEN_CATCH\]": "somebody outside has to send "
    "the outcome",
    r"test_update_logging_configuration": "recorded after its own later calls changed what it sent",
    r"cross_account": "needs a second account that trusts the first",
}


def wanted() -> list[dict[str, Any]]:
    """Return the cases that need something of ``NEEDS``."""
    return [case for case in cases.load() if case["needs"] and set(case["needs"]) <= NEEDS]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str | None]]:
    """Run the cases against a server whose targets are moto and the functions."""
    folder = tmp_path_factory.mktemp("targets")
    os.environ["MOTO_ACCOUNT_ID"] = "000000000000"
    moto = Moto().start()
    behaviours = {
        name: behaviour
        for case in wanted()
        for name, behaviour in (case.get("lambda_functions") or {}).items()
    }
    try:
        _prepare(moto)
        with Lambdas(behaviours) as lambdas:
            yield _replay(folder / "data", moto, lambdas)
    finally:
        moto.stop()
        del os.environ["MOTO_ACCOUNT_ID"]


def _prepare(moto: Moto) -> None:
    """Make the queues, topics and tables that the cases' inputs name."""
    text = json.dumps(wanted())
    for name in set(re.findall(r"000000000000/(queue-\w+)", text)):
        moto.client("sqs").create_queue(QueueName=name)
    for name in set(re.findall(r":sns:us-east-1:000000000000:([\w.-]+)", text)):
        fifo = {"Attributes": {"FifoTopic": "true"}} if name.endswith(".fifo") else {}
        moto.client("sns").create_topic(Name=name, **fifo)
    for name in set(re.findall(r"sfn_test_table_\w+", text)):
        moto.client("dynamodb").create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )


def _replay(data: Path, moto: Moto, lambdas: Lambdas) -> dict[str, str | None]:
    data.mkdir()
    (data / "functions.json").write_text(json.dumps(lambdas.registrations()))
    (data / "targets.json").write_text(json.dumps({"*": {"endpoint_url": moto.url, **KEYS}}))
    server = Server(data)
    server.start()
    _delete_groups(server)
    runner = _lenient()
    client = server.client()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            told = pool.map(lambda case: runner.run_case(case, client, 20), _stable())
            return dict(zip((case["id"] for case in wanted()), told, strict=True))
    finally:
        server.stop()


def _delete_groups(server: Server) -> None:
    """Make the log groups of the case whose group was deleted, and delete them."""
    text = json.dumps([case for case in wanted() if "sfn_api_logs/test_deleted" in case["id"]])
    logs = server.client("logs")
    for name in set(re.findall(r":log-group:([\w/.-]+):", text)):
        logs.create_log_group(logGroupName=name)
        logs.delete_log_group(logGroupName=name)


def _lenient() -> Any:
    """Return the runner; what stands for anything is equal to anything."""
    runner = cases.fresh_runner()
    strict = runner.diff
    runner.diff = lambda exp, act, path="": None if exp == ANY else strict(exp, act, path)
    return runner


def _stable() -> list[dict[str, Any]]:
    """Return the cases without what their recorder marked as unstable."""
    copies = copy.deepcopy(wanted())
    for case in copies:
        names = {path.removeprefix("$..") for path in case["unstable_paths"]}
        for step in case["steps"]:
            step["expect"] = _blurred(step.get("expect", {}), names)
    return copies


def _blurred(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: ANY if key in names else _blurred(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_blurred(item, names) for item in value]
    return value


def excuse(case_id: str) -> str:
    """Return why a case fails here, "" if it must pass."""
    reasons = (why for pattern, why in OUT_OF_REACH.items() if re.search(pattern, case_id))
    return next(reasons, cases.defect(case_id))


@pytest.mark.slow
def test_cases_with_targets(results: dict[str, str | None]) -> None:
    """Compare what fails with the list of reasons, both ways; print the count by need."""
    needs = {case["id"]: "+".join(case["needs"]) for case in wanted()}
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for case, told in results.items():
        counts[needs[case]]["failed" if told else "passed"] += 1
    for need, count in sorted(counts.items()):
        sys.stdout.write(f"{need}: {count['passed']} of {count.total()}\n")
    failed = {case: told for case, told in results.items() if told and not excuse(case)}
    assert failed == {}
    assert [case for case, told in results.items() if not told and excuse(case)] == []
