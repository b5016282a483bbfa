"""SDKs of other services get errors that they can read, and STS says who asks."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any

import boto3
import httpx
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance


def refused(call: Any, **params: Any) -> tuple[str, int]:
    """Return error code and HTTP status of a call that must be refused."""
    with pytest.raises(ClientError) as caught:
        call(**params)
    answer = caught.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def test_sts_says_who_asks(up: Server) -> None:
    """The account is that of the project's ARNs."""
    identity = up.client("sts").get_caller_identity()
    activity = up.client().create_activity(name="whose")["activityArn"]
    assert activity.split(":")[4] == identity["Account"]
    assert identity["Arn"].startswith(f"arn:aws:iam::{identity['Account']}:user/")
    assert identity["UserId"].startswith("AIDA")


def test_sts_checks_the_signature(up: Server) -> None:
    """Its errors are those of the query protocol."""
    wrong = up.client("sts", secret="x" * 40)
    assert refused(wrong.get_caller_identity) == ("SignatureDoesNotMatch", 403)
    unknown = up.client("sts", key="AKIA" + "Z" * 16)
    assert refused(unknown.get_caller_identity) == ("InvalidClientTokenId", 403)


@pytest.mark.parametrize(
    ("service", "method", "code"),
    [
        ("sts", "get_session_token", "InvalidAction"),
        ("iam", "list_users", "InvalidAction"),
        ("cloudformation", "list_stacks", "InvalidAction"),
        ("ec2", "describe_regions", "InvalidAction"),
        ("s3", "list_buckets", "UnknownOperation"),
        ("route53", "list_hosted_zones", "UnknownOperation"),
        ("lambda", "list_functions", "UnknownOperationException"),
        ("dynamodb", "list_tables", "UnknownOperationException"),
        ("kms", "list_keys", "UnknownOperationException"),
    ],
)
def test_a_service_that_is_not_here_answers_in_its_protocol(
    up: Server, service: str, method: str, code: str
) -> None:
    """The SDK reads the code from XML or JSON."""
    assert refused(getattr(up.client(service), method)) == (code, 400)


def test_a_form_of_a_page_is_no_such_call(up: Server) -> None:
    """Without a signature a POST is one of a browser, and needs its token."""
    connection = http.client.HTTPConnection(up.url.removeprefix("http://"))
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/login/", body="Action=GetCallerIdentity", headers=kind)
    answer = connection.getresponse()
    assert (answer.status, b"csrf" in answer.read().lower()) == (403, True)
    connection.close()


# -- without a signature in the headers ------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "method", "params", "code"),
    [
        (
            "sts",
            "assume_role_with_web_identity",
            {
                "RoleArn": "arn:aws:iam::123456789012:role/test",
                "RoleSessionName": "session",
                "WebIdentityToken": "token",
            },
            "InvalidAction",
        ),
        ("sso", "list_accounts", {"accessToken": "token"}, "UnknownOperationException"),
        ("lambda", "list_functions", {}, "UnknownOperationException"),
        ("scheduler", "list_schedules", {}, "UnknownOperationException"),
        ("sts", "get_caller_identity", {}, "InvalidAction"),
    ],
)
def test_an_unsigned_call_gets_an_answer_that_its_sdk_reads(
    up: Server, service: str, method: str, params: dict[str, Any], code: str
) -> None:
    """Not a page; and it reaches no operation."""
    unsigned = Config(signature_version=UNSIGNED, retries={"max_attempts": 0})
    client = boto3.client(service, endpoint_url=up.url, region_name="us-east-1", config=unsigned)
    assert refused(getattr(client, method), **params) == (code, 400)


@pytest.mark.parametrize(
    ("service", "method", "params", "expected"),
    [
        ("s3", "get_object", {"Bucket": "b", "Key": "k"}, "<Code>UnknownOperation</Code>"),
        ("sts", "get_caller_identity", {}, "UnknownOperationException"),
        ("scheduler", "get_schedule", {"Name": "x"}, "UnknownOperationException"),
    ],
)
def test_a_presigned_address_is_refused_in_its_protocol(
    up: Server, service: str, method: str, params: dict[str, Any], expected: str
) -> None:
    """With no page, and no operation is reached."""
    address = up.client(service).generate_presigned_url(method, Params=params)
    answer = httpx.get(address)
    assert (answer.status_code, expected in answer.text) == (400, True)
    assert "html" not in answer.headers["content-type"]


def test_a_service_is_known_by_its_sdk(up: Server) -> None:
    """The newer SDKs name it in their User-Agent, also for calls that are not signed."""
    agent = "aws-sdk-js/3.900.0 ua/2.1 os/linux#6 lang/js md/nodejs#22 api/s3#3.900.0"
    headers = {"User-Agent": agent, "amz-sdk-request": "attempt=1; max=3"}
    answer = httpx.get(f"{up.url}/bucket/key", headers=headers)
    assert "<Error><Code>UnknownOperation</Code>" in answer.text
