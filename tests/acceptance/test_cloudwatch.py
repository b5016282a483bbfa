"""boto3's CloudWatch client and the AWS CLI read the metrics of a mixed run over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.loaders import Loader

from tests.acceptance.server import wait_for_end
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/tests"
ENDS = {
    "SUCCEEDED": "ExecutionsSucceeded",
    "FAILED": "ExecutionsFailed",
    "TIMED_OUT": "ExecutionsTimedOut",
    "ABORTED": "ExecutionsAborted",
}
MIXED = {
    "StartAt": "How",
    "TimeoutSeconds": 2,
    "States": {
        "How": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.how", "StringEquals": "good", "Next": "Good"},
                {"Variable": "$.how", "StringEquals": "bad", "Next": "Bad"},
            ],
            "Default": "Long",
        },
        "Good": {"Type": "Pass", "End": True},
        "Bad": {"Type": "Fail", "Error": "Bad"},
        "Long": {"Type": "Wait", "Seconds": 60, "End": True},
    },
}


@pytest.fixture(scope="module")
def mixed(up: Server) -> str:
    """Run a hundred executions of four fates; return the machine's ARN."""
    client = up.client()
    machine = client.create_state_machine(name="Mixed", definition=json.dumps(MIXED), roleArn=ROLE)
    arn: str = machine["stateMachineArn"]
    runs = []
    for number in range(100):
        how = ["good", "good", "bad", "long", "stop"][number % 5]
        run = client.start_execution(stateMachineArn=arn, input=json.dumps({"how": how}))
        runs.append(run["executionArn"])
        if how == "stop":
            client.stop_execution(executionArn=run["executionArn"])
    for run in runs:
        wait_for_end(client, run)
    return arn


def span() -> dict[str, datetime]:
    """Return the last hour and the minute that goes on."""
    now = datetime.now(UTC)
    return {"StartTime": now - timedelta(hours=1), "EndTime": now + timedelta(minutes=1)}


def dimensions(arn: str) -> list[dict[str, str]]:
    """Return the dimension of a machine."""
    return [{"Name": "StateMachineArn", "Value": arn}]


def listed(up: Server, arn: str) -> list[dict[str, Any]]:
    """Return what ListExecutions says."""
    pages = up.client().get_paginator("list_executions").paginate(stateMachineArn=arn)
    return [execution for page in pages for execution in page["executions"]]


def test_the_seven_metrics_equal_the_list_of_executions(up: Server, mixed: str) -> None:
    """A mixed run of 100: every count, and the times, are those that ListExecutions gives."""
    executions = listed(up, mixed)
    fates = Counter(execution["status"] for execution in executions)
    assert len(executions) == 100
    assert fates == {"SUCCEEDED": 40, "FAILED": 20, "TIMED_OUT": 20, "ABORTED": 20}
    expected: dict[str, float] = {metric: fates[status] for status, metric in ENDS.items()}
    expected |= {"ExecutionsStarted": 100, "ExecutionThrottled": 0}

    def ask(name: str, **more: Any) -> list[dict[str, Any]]:
        answer = up.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/States",
            MetricName=name,
            Period=3600 * 2,
            **{"Dimensions": dimensions(mixed), **span(), **more},
        )
        points: list[dict[str, Any]] = answer["Datapoints"]
        return points

    got = {name: sum(point["Sum"] for point in ask(name, Statistics=["Sum"])) for name in expected}
    assert got == expected
    times = sorted(
        round((execution["stopDate"] - execution["startDate"]).total_seconds() * 1000)
        for execution in executions
    )
    (time,) = ask("ExecutionTime", Statistics=["SampleCount", "Sum", "Minimum", "Maximum"])
    assert time["Unit"] == "Milliseconds"
    assert [time[name] for name in ("SampleCount", "Sum", "Minimum", "Maximum")] == [
        *(100, sum(times), times[0], times[-1])
    ]
    (percentile,) = ask("ExecutionTime", ExtendedStatistics=["p90"])
    assert percentile["ExtendedStatistics"]["p90"] == pytest.approx(times[89], rel=0.005, abs=1)


def test_metric_data_come_in_pages(up: Server, mixed: str) -> None:
    """GetMetricData of all counts, one value a page, adds up to the same numbers."""
    queries = [
        {
            "Id": metric.lower(),
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/States",
                    "MetricName": metric,
                    "Dimensions": dimensions(mixed),
                },
                "Period": 60,
                "Stat": "Sum",
            },
        }
        for metric in ENDS.values()
    ]
    client = up.client("cloudwatch")
    more: dict[str, str] = {}
    got, pages = Counter[str](), 0
    asked = {"MetricDataQueries": queries, "MaxDatapoints": 1, **span()}
    while True:
        answer = client.get_metric_data(**asked, **more)
        pages += 1
        values = [
            (result["Id"], value)
            for result in answer["MetricDataResults"]
            for value in result["Values"]
        ]
        assert len(values) == 1
        got[values[0][0]] += values[0][1]
        if "NextToken" not in answer:
            break
        more = {"NextToken": answer["NextToken"]}
    assert got == {
        "executionssucceeded": 40,
        "executionsfailed": 20,
        "executionstimedout": 20,
        "executionsaborted": 20,
    }
    assert pages >= 4
    with pytest.raises(ClientError) as refused:
        client.get_metric_data(**{**asked, "MaxDatapoints": 2}, NextToken="AAAA")
    assert refused.value.response["Error"]["Code"] == "InvalidNextToken"


def test_list_metrics_names_what_has_values(up: Server, mixed: str) -> None:
    """The metrics of one machine, and those of the account without a dimension."""
    client = up.client("cloudwatch")
    pages = client.get_paginator("list_metrics")
    metrics = [
        metric
        for page in pages.paginate(Namespace="AWS/States", Dimensions=dimensions(mixed))
        for metric in page["Metrics"]
    ]
    assert {metric["MetricName"] for metric in metrics} == {
        *ENDS.values(),
        "ExecutionTime",
        "ExecutionsStarted",
    }
    assert all(metric["Dimensions"] == dimensions(mixed) for metric in metrics)
    (gauge,) = client.list_metrics(MetricName="OpenExecutionCount")["Metrics"]
    assert gauge["Dimensions"] == []
    assert client.list_metrics(Namespace="AWS/EC2")["Metrics"] == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"Statistics": None}, "MissingParameter"),
        ({"Period": 61}, "InvalidParameterValue"),
        ({"StartTime": datetime(2020, 1, 1, tzinfo=UTC)}, "InvalidParameterCombination"),
        ({"EndTime": datetime(2020, 1, 1, tzinfo=UTC)}, "InvalidParameterValue"),
        ({"ExtendedStatistics": ["p99"]}, "InvalidParameterCombination"),
        ({"Statistics": None, "ExtendedStatistics": ["p101"]}, "InvalidParameterValue"),
    ],
)
def test_bad_requests_are_refused(up: Server, change: dict[str, Any], code: str) -> None:
    """Bad requests are refused with AWS's error codes."""
    good = {"Namespace": "AWS/States", "MetricName": "ExecutionTime", "Period": 60}
    asked = {**good, "Statistics": ["Sum"], **span(), **change}
    parameters = {name: value for name, value in asked.items() if value is not None}
    with pytest.raises(ClientError) as refused:
        up.client("cloudwatch").get_metric_statistics(**parameters)
    assert refused.value.response["Error"]["Code"] == code


def test_a_client_that_speaks_cbor_reads_them(up: Server, mixed: str, tmp_path: Path) -> None:
    """Botocore with a model that leaves it no other protocol: counts, times and errors."""
    model = Loader().load_service_model("cloudwatch", "service-2")
    model["metadata"] |= {"protocols": ["smithy-rpc-v2-cbor"]}
    place = tmp_path / "cloudwatch" / model["metadata"]["apiVersion"]
    place.mkdir(parents=True)
    (place / "service-2.json").write_text(json.dumps(model))
    session = botocore.session.get_session()
    session.get_component("data_loader").search_paths.insert(0, str(tmp_path))
    key, secret = up.keys()
    client = session.create_client(
        "cloudwatch",
        region_name="us-east-1",
        endpoint_url=up.url,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )
    sent: list[str] = []
    client.meta.events.register(
        "before-send",
        lambda request, **_: sent.append(str(request.headers["smithy-protocol"], "ascii")),
    )
    asked = {"Namespace": "AWS/States", "MetricName": "ExecutionsFailed", **span()}
    points = client.get_metric_statistics(
        **{**asked, "Period": 60, "Statistics": ["Sum"], "Dimensions": dimensions(mixed)}
    )["Datapoints"]
    assert sum(point["Sum"] for point in points) == 20
    assert all(asked["StartTime"] < point["Timestamp"] < asked["EndTime"] for point in points)
    with pytest.raises(ClientError) as refused:
        client.get_metric_statistics(**{**asked, "Period": 61, "Statistics": ["Sum"]})
    assert refused.value.response["Error"]["Code"] == "InvalidParameterValue"
    assert sent == ["rpc-v2-cbor"] * 2


def test_the_aws_cli_reads_them(up: Server, mixed: str) -> None:
    """``aws cloudwatch get-metric-statistics`` gives the same count."""
    command = [str(Path(sys.executable).parent / "aws"), "--endpoint-url", up.url]
    command += ["--region", "us-east-1", "--output", "json", "cloudwatch", "get-metric-statistics"]
    command += ["--namespace", "AWS/States", "--metric-name", "ExecutionsFailed"]
    command += ["--dimensions", f"Name=StateMachineArn,Value={mixed}", "--statistics", "Sum"]
    times = {name: moment.isoformat() for name, moment in span().items()}
    command += ["--start-time", times["StartTime"], "--end-time", times["EndTime"]]
    credentials = {"AWS_SHARED_CREDENTIALS_FILE": str(up.data / "credentials")}
    done = subprocess.run(
        [*command, "--period", "60"],
        env={**os.environ, **credentials, "AWS_PROFILE": "stateyard", "AWS_PAGER": ""},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sum(point["Sum"] for point in json.loads(done.stdout)["Datapoints"]) == 20


def test_prometheus_reads_them(up: Server, mixed: str) -> None:
    """The OpenMetrics text parses, and its counters and histogram have the same numbers."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    with urllib.request.urlopen(f"{up.url}/metrics", timeout=PATIENCE_S) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        text = answer.read().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}

    def value(family: str, sample: str, **labels: str) -> float:
        (number,) = [
            series.value
            for series in families[family].samples
            if series.name == sample and labels.items() <= series.labels.items()
        ]
        return float(number)

    failed = "stateyard_executions_failed"
    assert value(failed, f"{failed}_total", state_machine_arn=mixed) == 20
    time = "stateyard_execution_time_seconds"
    assert value(time, f"{time}_count", state_machine_arn=mixed) == 100
    assert value(time, f"{time}_bucket", state_machine_arn=mixed, le="+Inf") == 100
    below = value(time, f"{time}_bucket", state_machine_arn=mixed, le="1.0")
    quick = [
        execution
        for execution in listed(up, mixed)
        if (execution["stopDate"] - execution["startDate"]).total_seconds() <= 1
    ]
    assert below == len(quick)


@pytest.mark.parametrize("header", ["X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https"])
def test_prometheus_behind_a_proxy_needs_the_token(up: Server, header: str) -> None:
    """A request that was forwarded is not from this machine, wherever its connection comes from."""
    name, _, value = header.partition(": ")
    request = urllib.request.Request(f"{up.url}/metrics", headers={name: value})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=PATIENCE_S)
    assert refused.value.code == 401
    refused.value.close()


# -- alarms ----------------------------------------------------------------------------------------


def test_alarms_are_kept_as_cloudwatch_keeps_them(up: Server, mixed: str) -> None:
    """What PutMetricAlarm says is what DescribeAlarms answers, and what does not fit is refused."""
    client = up.client("cloudwatch")
    alarm: dict[str, Any] = {
        "AlarmName": "too many fail",
        "AlarmDescription": "of the mixed ones",
        "Namespace": "AWS/States",
        "MetricName": "ExecutionsFailed",
        "Dimensions": dimensions(mixed),
        "Statistic": "Sum",
        "Period": 3600,
        "EvaluationPeriods": 2,
        "DatapointsToAlarm": 1,
        "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
    }
    client.put_metric_alarm(**alarm)
    client.put_metric_alarm(
        **{**alarm, "AlarmName": "slow", "MetricName": "ExecutionTime", "Statistic": "Average"}
    )
    [description] = client.describe_alarms(AlarmNames=["too many fail"])["MetricAlarms"]
    assert {name: description[name] for name in alarm} == alarm
    assert (
        description["AlarmArn"] == "arn:aws:cloudwatch:us-east-1:123456789012:alarm:too many fail"
    )
    assert description["ActionsEnabled"] is True
    pages = client.get_paginator("describe_alarms").paginate(PaginationConfig={"PageSize": 1})
    names = [each["AlarmName"] for page in pages for each in page["MetricAlarms"]]
    assert names == ["slow", "too many fail"]
    answer = client.describe_alarms_for_metric(
        Namespace="AWS/States", MetricName="ExecutionTime", Dimensions=dimensions(mixed)
    )
    assert [each["AlarmName"] for each in answer["MetricAlarms"]] == ["slow"]
    wait_for_alarm(client, "too many fail", "ALARM")
    client.set_alarm_state(AlarmName="slow", StateValue="ALARM", StateReason="a drill")
    assert client.describe_alarms(StateValue="ALARM")["MetricAlarms"][0]["StateReason"] == "a drill"
    for change, words in (
        ({"AlarmActions": ["arn:aws:sns:us-east-1:123456789012:ops"]}, "a rule for the event"),
        ({"Namespace": "AWS/Lambda"}, "Use a metric of AWS/States"),
        ({"Period": 61}, "multiple of 60"),
        ({"EvaluationPeriods": 999}, "EvaluationPeriods must be 1 to"),
        ({"DatapointsToAlarm": 3}, "DatapointsToAlarm must be 1 to"),
        ({"ExtendedStatistic": "p99"}, "Exactly one of Statistic"),
        ({"MetricName": "OpenExecutionCount", "Dimensions": []}, "no minute but the present"),
    ):
        with pytest.raises(ClientError, match=words):
            client.put_metric_alarm(**{**alarm, **change})
    with pytest.raises(ClientError, match="There is no alarm nobody"):
        client.delete_alarms(AlarmNames=["slow", "nobody"])
    client.delete_alarms(AlarmNames=["slow", "too many fail"])
    assert client.describe_alarms()["MetricAlarms"] == []


def wait_for_alarm(client: Any, name: str, state: str) -> None:
    """Wait until the server has evaluated an alarm, which it does once a minute."""
    until = time.monotonic() + 150
    while time.monotonic() < until:
        [alarm] = client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        if alarm["StateValue"] == state:
            return
        time.sleep(1)
    raise AssertionError(alarm)
