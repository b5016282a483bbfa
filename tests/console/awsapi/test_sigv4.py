"""Is a signature checked, not decorated?

botocore signs; each change of what it signed must be refused.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from console.awsapi import errors, sigv4

KEY, SECRET = "AKIAEXAMPLE", "s3cr3t/with+signs"
BODY = b'{"a":1}'


def signed(**changes: Any) -> dict[str, list[str]]:
    """Return the headers of a request as botocore signs it.

    ``changes`` replace or (None) drop some.
    """
    request = AWSRequest(
        "POST",
        "http://127.0.0.1:8083/",
        data=changes.pop("body", BODY),
        headers={
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "AWSStepFunctions.ListStateMachines",
            "Host": "127.0.0.1:8083",
        },
    )
    credentials = Credentials(KEY, changes.pop("secret", SECRET), changes.pop("session", None))
    SigV4Auth(credentials, changes.pop("service", "states"), "us-east-1").add_auth(request)
    headers = {name.lower(): [value] for name, value in request.headers.items()}
    for name, value in changes.items():
        if value is None:
            headers.pop(name.replace("_", "-"), None)
        else:
            headers[name.replace("_", "-")] = [value]
    return headers


def verify(headers: dict[str, list[str]], body: bytes = BODY, skew: int = 0) -> sigv4.Signed:
    """Check with one known key and a clock that is ``skew`` seconds ahead."""
    return sigv4.verify(headers, body, {KEY: SECRET}.get, time.time() + skew)


def test_what_botocore_signs_is_accepted() -> None:
    """The real signer's request passes, and says who asks in which region."""
    assert verify(signed()) == sigv4.Signed(KEY, "us-east-1")


@pytest.mark.parametrize("skew", [-298, 298])
def test_five_minutes_of_skew_are_fine(skew: int) -> None:
    """Clocks may differ by just under five minutes."""
    assert verify(signed(), skew=skew)


@pytest.mark.parametrize("skew", [-302, 302])
def test_more_skew_is_refused(skew: int) -> None:
    """A request that is too old, or from the future, is refused."""
    with pytest.raises(errors.InvalidSignature):
        verify(signed(), skew=skew)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"authorization": None}, errors.MissingAuthenticationToken),
        ({"authorization": "AWS4-HMAC-SHA256 nonsense"}, errors.IncompleteSignature),
        ({"authorization": "AWS4-ECDSA-P256-SHA256 x"}, errors.IncompleteSignature),
        ({"authorization": "none"}, errors.IncompleteSignature),
        ({"x_amz_target": "AWSStepFunctions.DeleteStateMachine"}, errors.InvalidSignature),
        ({"host": "evil.example"}, errors.InvalidSignature),
        ({"secret": "other"}, errors.InvalidSignature),
        ({"service": "lambda"}, errors.InvalidSignature),
        ({"session": "token-we-never-issued"}, errors.UnrecognizedClient),
        ({"x_amz_content_sha256": "UNSIGNED-PAYLOAD"}, errors.InvalidSignature),
        ({"x_amz_date": "20200101T000000Z"}, errors.InvalidSignature),
        ({"x_amz_date": "yesterday"}, errors.IncompleteSignature),
        ({"content_type": None}, errors.IncompleteSignature),
    ],
)
def test_every_change_is_refused(changes: dict[str, Any], error: type[Exception]) -> None:
    """What is missing, altered or of another kind never passes."""
    with pytest.raises(error):
        verify(signed(**changes))


def test_altered_body_is_refused() -> None:
    """The body's hash is part of what is signed."""
    with pytest.raises(errors.InvalidSignature):
        verify(signed(), body=BODY + b" ")


def test_unknown_key_is_refused() -> None:
    """A key nobody has is told apart from a wrong secret, as AWS does."""
    with pytest.raises(errors.UnrecognizedClient):
        sigv4.verify(signed(), BODY, lambda _: None, time.time())


@pytest.mark.parametrize("name", ["host", "x-amz-date", "x-amz-target"])
def test_what_must_be_signed_must_be_signed(name: str) -> None:
    """Dropping a header from SignedHeaders does not free it from being checked."""
    headers = signed()
    headers["authorization"] = [
        headers["authorization"][0].replace(f"{name};", "").replace(f";{name},", ",")
    ]
    with pytest.raises(errors.InvalidSignature, match="must be signed"):
        verify(headers)


def test_two_authorizations_are_refused() -> None:
    """Nobody can choose which of two headers is looked at."""
    headers = signed()
    headers["authorization"] *= 2
    with pytest.raises(errors.IncompleteSignature):
        verify(headers)


def test_scope_must_match_the_date() -> None:
    """A scope of another day is refused before any hashing."""
    today = datetime.now(UTC).strftime("%Y%m%d")
    headers = signed()
    headers["authorization"] = [headers["authorization"][0].replace(f"/{today}/", "/20200101/")]
    with pytest.raises(errors.InvalidSignature):
        verify(headers)
