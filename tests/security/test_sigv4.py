"""The verifier checks every part of a signature.

botocore signs; each change of what it signed must be refused. The lines S1 to S4 of the threat
cases, on the verifier alone; ``test_signed_calls`` has those that need keys and operations.
"""

from __future__ import annotations

import gc
import sys
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from console.awsapi import sigv4
from console.errors import ErrorCode, ProtocolError
from tests.refusals import raises_code

KEY, SECRET = "AKIAEXAMPLE", "s3cr3t/with+signs"
BODY = b'{"a":1}'
URL = "http://127.0.0.1:8083"
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "AWSStepFunctions.ListStateMachines",
    "Host": "127.0.0.1:8083",
}


def signed(**changes: Any) -> dict[str, list[str]]:
    """Return the headers of a request as botocore signs it.

    ``changes`` replace or (None) drop some.
    """
    request = AWSRequest(
        "POST",
        URL + changes.pop("path", "/"),
        data=changes.pop("body", BODY),
        headers={**HEADERS, **changes.pop("more", {})},
    )
    credentials = Credentials(KEY, changes.pop("secret", SECRET), changes.pop("session", None))
    scope = changes.pop("service", "states"), changes.pop("region", "us-east-1")
    SigV4Auth(credentials, *scope).add_auth(request)
    headers = {name.lower(): [value] for name, value in request.headers.items()}
    for name, value in changes.items():
        if value is None:
            headers.pop(name.replace("_", "-"), None)
        else:
            headers[name.replace("_", "-")] = [value]
    return headers


def verify(
    headers: dict[str, list[str]], body: bytes = BODY, *, has_key: bool = True, **more: Any
) -> sigv4.Signed:
    """Check with a server that has one key, whose secret every other key would have, too."""
    now_s = more.pop("now_s", time.time())
    return sigv4.verify_signature(
        headers, body, lambda _: SECRET, lambda key: has_key and key == KEY, now_s, **more
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"region": "ap-northeast-1"},
        {"body": b""},
        {"body": '{"ä": "日本"}'.encode()},
        {"body": b"\x00\xff" * 100_000},
        {"more": {"X-Amz-Meta": "  a \t  b  "}},
        {"more": {"Amz-Sdk-Request": "attempt=1; max=3", "User-Agent": "proxies change this"}},
    ],
)
def test_what_botocore_signs_is_accepted(changes: dict[str, Any]) -> None:
    """The real signer's request passes, and says who asks in which region."""
    region = changes.get("region", "us-east-1")
    signer = verify(signed(**changes), changes.get("body", BODY))
    assert signer == sigv4.Signed(KEY, region)


def test_a_path_that_names_the_action_is_signed() -> None:
    """CBOR calls have no X-Amz-Target: their path is part of the signature."""
    path = "/service/GraniteServiceVersion20100801/operation/ListMetrics"
    headers = signed(path=path, service="monitoring")
    assert verify(headers, services=("monitoring",), line=sigv4.RequestLine(path=path))
    with raises_code(ErrorCode.InvalidSignatureException):
        verify(
            headers,
            services=("monitoring",),
            line=sigv4.RequestLine(path=path.replace("List", "Last")),
        )


# -- S1: the clock ---------------------------------------------------------------------------------


def stamped(headers: dict[str, list[str]]) -> float:
    """Return when a request says it was signed, epoch seconds."""
    return datetime.fromisoformat(headers["x-amz-date"][0]).timestamp()


@pytest.mark.parametrize("skew", [-300, -299, 0, 299, 300])
def test_five_minutes_of_skew_are_fine(skew: int) -> None:
    """Clocks may differ by five minutes."""
    headers = signed()
    assert verify(headers, now_s=stamped(headers) + skew)


@pytest.mark.parametrize("skew", [-301, 301, -86_400 * 365, 86_400 * 365])
def test_more_skew_is_refused(skew: int) -> None:
    """A request that is too old, or from the future, is refused."""
    headers = signed()
    message = r"Signature (expired|not yet current)"
    with raises_code(ErrorCode.InvalidSignatureException, match=message):
        verify(headers, now_s=stamped(headers) + skew)


# -- S2: who asks ----------------------------------------------------------------------------------


def test_a_key_that_may_not_be_used_is_refused() -> None:
    """One that nobody has, or that is disabled, is told apart from a wrong secret, as AWS does."""
    with raises_code(ErrorCode.UnrecognizedClientException):
        verify(signed(), has_key=False)


def test_whether_its_secret_was_right_is_not_told_of_a_key_that_may_not_be_used() -> None:
    """Right or wrong, the answer is the same word for word."""
    texts = set()
    for secret in (SECRET, "other"):
        with raises_code(ErrorCode.UnrecognizedClientException) as caught:
            verify(signed(secret=secret), has_key=False)
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_every_refusal_costs_the_same_work() -> None:
    """No oracle by time: unknown key, token or wrong secret, the very same calls are made."""
    right = work(signed())
    assert "digest" in right
    assert "compare_digest" in right
    assert work(signed(secret="other")) == right
    assert work(signed(), has_key=False) == right
    assert work(signed(secret="other"), has_key=False) == right
    early = signed()
    early["authorization"] = [early["authorization"][0][:-64] + "0" * 64]
    assert work(early) == right


def test_a_refusal_does_not_tell_whether_the_key_is_in_use() -> None:
    """The signing keys that are kept for the next call change nothing for a wrong signature."""
    sigv4._signing_keys.clear()
    wrong = signed(secret="other")
    unused = [
        whole_work(wrong),
        whole_work(wrong, has_key=False),
        whole_work(signed(), has_key=False),
    ]
    assert not sigv4._signing_keys  # nobody fills the memory by refused calls
    verify(signed())
    assert len(sigv4._signing_keys) == 1
    used = [
        whole_work(wrong),
        whole_work(wrong, has_key=False),
        whole_work(signed(), has_key=False),
    ]
    assert used == unused
    assert len({tuple(calls) for calls in used}) == 1
    assert used[0].count("compare_digest") == 2


def test_a_kept_signing_key_is_good_for_its_day_region_and_service() -> None:
    """Another scope has another one, and a key that was disabled meanwhile is refused."""
    sigv4._signing_keys.clear()
    for region in ("us-east-1", "eu-west-1", "us-east-1"):
        assert verify(signed(region=region)).region == region
    assert {scope[2] for scope in sigv4._signing_keys} == {"us-east-1", "eu-west-1"}
    with raises_code(ErrorCode.UnrecognizedClientException):
        verify(signed(), has_key=False)
    with raises_code(ErrorCode.UnrecognizedClientException):
        verify(signed(x_amz_security_token="added"))
    with raises_code(ErrorCode.InvalidSignatureException):
        verify(signed(), b"another body")


def test_no_more_signing_keys_are_kept_than_clients_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their number is bounded, and who is forgotten is only checked the longer way again."""
    monkeypatch.setattr(sigv4, "_MOST_KEYS", 3)
    sigv4._signing_keys.clear()
    for number in range(10):
        assert verify(signed(region=f"region-{number}"))
        assert len(sigv4._signing_keys) <= 3


def whole_work(headers: dict[str, list[str]], **more: Any) -> list[str]:
    """Return the functions that a check calls, in their order, up to its last comparison."""
    calls = all_work(headers, **more)
    return calls[: len(calls) - calls[::-1].index("compare_digest")]


def work(headers: dict[str, list[str]], **more: Any) -> list[str]:
    """Return the functions that a check calls, in their order, up to its decision."""
    calls = all_work(headers, **more)
    return calls[: calls.index("compare_digest") + 1]


def all_work(headers: dict[str, list[str]], **more: Any) -> list[str]:
    """Return the functions that a check calls, in their order."""
    calls: list[str] = []

    def seen(frame: Any, event: str, what: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)
        elif event == "c_call":
            calls.append(what.__name__)

    gc.disable()  # what it would call is none of the check's work
    sys.setprofile(seen)
    try:
        verify(headers, **more)
    except ProtocolError:
        pass
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


# -- S3: what is signed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"authorization": None}, ErrorCode.MissingAuthenticationTokenException),
        ({"authorization": ""}, ErrorCode.IncompleteSignatureException),
        ({"authorization": "none"}, ErrorCode.IncompleteSignatureException),
        ({"authorization": "Bearer nothing"}, ErrorCode.IncompleteSignatureException),
        ({"authorization": "AWS4-HMAC-SHA256 nonsense"}, ErrorCode.IncompleteSignatureException),
        ({"authorization": "AWS4-ECDSA-P256-SHA256 x"}, ErrorCode.IncompleteSignatureException),
        (
            {"x_amz_target": "AWSStepFunctions.DeleteStateMachine"},
            ErrorCode.InvalidSignatureException,
        ),
        ({"host": "evil.example"}, ErrorCode.InvalidSignatureException),
        ({"secret": "other"}, ErrorCode.InvalidSignatureException),
        ({"service": "lambda"}, ErrorCode.InvalidSignatureException),
        ({"path": "/other"}, ErrorCode.InvalidSignatureException),
        ({"x_amz_content_sha256": "UNSIGNED-PAYLOAD"}, ErrorCode.InvalidSignatureException),
        (
            {"x_amz_content_sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"},
            ErrorCode.InvalidSignatureException,
        ),
        (
            {"more": {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}},
            ErrorCode.InvalidSignatureException,
        ),
        ({"x_amz_date": "20200101T000000Z"}, ErrorCode.InvalidSignatureException),
        ({"x_amz_date": "yesterday"}, ErrorCode.IncompleteSignatureException),
        ({"x_amz_date": "20201301T000000Z"}, ErrorCode.IncompleteSignatureException),
        ({"content_type": None}, ErrorCode.IncompleteSignatureException),
    ],
)
def test_every_change_is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    """What is missing, altered or of another kind never passes."""
    with raises_code(error):
        verify(signed(**changes))


@pytest.mark.parametrize(
    "name", ["authorization", "content-type", "host", "x-amz-date", "x-amz-target"]
)
def test_every_byte_of_the_headers_counts(name: str) -> None:
    """Whichever one is another, the request is refused."""
    headers = signed()
    assert set(headers) == {"authorization", "content-type", "host", "x-amz-date", "x-amz-target"}
    (value,) = headers[name]
    for place, char in enumerate(value):
        for bit in (1, 32):
            other = value[:place] + chr(ord(char) ^ bit) + value[place + 1 :]
            with pytest.raises(ProtocolError):
                verify({**headers, name: [other]})


def test_every_byte_of_the_body_counts() -> None:
    """Whichever one is another, is missing or is added, the request is refused."""
    others = [BODY[:at] + bytes([BODY[at] ^ 1]) + BODY[at + 1 :] for at in range(len(BODY))]
    for other in (*others, b"", BODY[:-1], BODY + b" ", b"\xef\xbb\xbf" + BODY):
        with raises_code(ErrorCode.InvalidSignatureException):
            verify(signed(), other)


@pytest.mark.parametrize("name", ["host", "x-amz-date", "x-amz-target"])
def test_what_must_be_signed_must_be_signed(name: str) -> None:
    """Dropping a header from SignedHeaders does not free it from being checked."""
    headers = signed()
    headers["authorization"] = [
        headers["authorization"][0].replace(f"{name};", "").replace(f";{name},", ",")
    ]
    with raises_code(ErrorCode.InvalidSignatureException, match="must be signed"):
        verify(headers)


@pytest.mark.parametrize(
    "listed",
    ["host;content-type;x-amz-date;x-amz-target", "host;host;x-amz-date;x-amz-target"],
)
def test_signed_headers_are_sorted_and_named_once(listed: str) -> None:
    """There is one way to write the list, so nothing can hide in it."""
    headers = signed()
    usual = "content-type;host;x-amz-date;x-amz-target"
    headers["authorization"] = [headers["authorization"][0].replace(usual, listed)]
    with raises_code(ErrorCode.IncompleteSignatureException, match="sorted"):
        verify(headers)


@pytest.mark.parametrize("name", ["authorization", "x-amz-date", "x-amz-target", "host"])
def test_a_header_twice_is_refused(name: str) -> None:
    """Nobody can choose which of two headers is looked at."""
    headers = signed()
    headers[name] *= 2
    with pytest.raises(ProtocolError):
        verify(headers)


def test_scope_must_match_the_date() -> None:
    """A scope of another day is refused before any hashing."""
    today = datetime.now(UTC).strftime("%Y%m%d")
    headers = signed()
    headers["authorization"] = [headers["authorization"][0].replace(f"/{today}/", "/20200101/")]
    with raises_code(ErrorCode.InvalidSignatureException):
        verify(headers)


# -- S4: session tokens ----------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{"session": "never-issued"}, {"x_amz_security_token": "added"}])
def test_a_session_token_is_refused(more: dict[str, str]) -> None:
    """None is ever issued, so a long-term key has none, signed or not."""
    with raises_code(ErrorCode.UnrecognizedClientException):
        verify(signed(**more))
