"""Verify AWS Signature Version 4 of a request, in its headers only.

``console.awsapi`` explains the scheme and what is refused. The order of the checks matters: until
the signature is compared, nothing may depend on whether the key exists. So ``may_use`` is called
first, but its result is used last.

Source: AWS Identity and Access Management, "Create a signed AWS API request".
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from console.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_SKEW_S = 300
_ALGORITHM = "AWS4-HMAC-SHA256"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<key>[A-Za-z0-9]{4,128})/(?P<day>\d{8})/"
    r"(?P<region>[a-z0-9-]{1,32})/(?P<service>[a-z0-9-]+)/aws4_request,\s*"
    r"SignedHeaders=(?P<headers>[a-z0-9;-]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)
_STAMP = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
UNKNOWN_KEY = (
    "The security token included in the request is invalid. (This server takes the keys of its own "
    "credentials file; `stepyard up --insecure-accept-any-key` takes any.)"
)
"""AWS's own words, and what to do about it on this server."""
MUST_SIGN = frozenset({"host", "x-amz-date", "x-amz-target"})
_BLANK = " \t"
_BLANKS = re.compile(r"[ \t]+")
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS "
    "Secret Access Key and signing method. Consult the service documentation for details."
)


@dataclass(frozen=True, slots=True)
class RequestLine:
    """Method, path and query of a request, both as they were sent."""

    method: str = "POST"
    path: str = "/"
    query: str = ""

    @property
    def canonical_path(self) -> str:
        """Return the path as it is signed: its percent signs are escaped once more."""
        return quote(self.path, safe="/~")

    @property
    def canonical_query(self) -> str:
        """Return the query as it is signed: escaped the one right way, and sorted."""
        fields = (field.partition("=") for field in self.query.split("&") if field)
        pairs = sorted((_escape(name), _escape(value)) for name, _, value in fields)
        return "&".join(f"{name}={value}" for name, value in pairs)


def _escape(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="~")


_ROOT = RequestLine()


@dataclass(frozen=True, slots=True)
class Signed:
    """A request whose signature is right."""

    key_id: str
    region: str


def verify_signature(
    headers: Mapping[str, Sequence[str]],
    body: bytes,
    secret_for: Callable[[str], str],
    may_use: Callable[[str], bool],
    now_s: float,
    services: Sequence[str] = ("states",),
    line: RequestLine = _ROOT,
    must_sign: frozenset[str] = MUST_SIGN,
) -> Signed:
    """Check the signature of a request; raise one of the edge's signature errors.

    ``headers``: lower-case name -> values in their order. ``secret_for``: the secret that a key id
    has or would have. ``may_use``: whether the key is there and may be used. ``now_s``: epoch
    seconds. ``line``: its path names the action unless it is "/". ``must_sign``: the headers that
    have to be signed.
    """
    credential = _parse_authorization(headers)
    if credential["service"] not in services:
        service = credential["service"]
        raise ProtocolError(
            ErrorCode.InvalidSignatureException,
            f"Credential should be scoped to correct service: {services[0]!r}, got {service!r}",
        )
    signed = credential["headers"].split(";")
    # The path is always signed. Where it names the action (CBOR) there is no such header.
    by_header = must_sign if line.path == "/" else must_sign - {"x-amz-target"}
    _check_coverage(signed, headers, by_header)
    stamp = _single_value(headers, "x-amz-date")
    _check_date(stamp, credential["day"], now_s)
    usable = may_use(credential["key"])
    scope = (credential["day"], credential["region"], credential["service"])
    canonical = _canonical_request(headers, signed, body, line)
    expected = _signature(secret_for(credential["key"]), scope, stamp, canonical)
    right = hmac.compare_digest(expected, credential["signature"])
    # An unknown key is refused before a wrong signature, as AWS does it, and after the same work.
    if not usable or "x-amz-security-token" in headers:  # this server issues no session tokens
        raise ProtocolError(
            ErrorCode.UnrecognizedClientException,
            UNKNOWN_KEY,
        )
    if not right:
        raise ProtocolError(ErrorCode.InvalidSignatureException, _MISMATCH)
    return Signed(credential["key"], credential["region"])


def claimed_region(headers: Mapping[str, Sequence[str]]) -> str:
    """Return the region that the Authorization header names, without a check; "" without one."""
    match = _AUTHORIZATION.fullmatch(next(iter(headers.get("authorization", ())), "").strip())
    return match["region"] if match else ""


def claimed_service(headers: Mapping[str, Sequence[str]]) -> str:
    """Return the service that the Authorization header names, without a check; "" without one."""
    match = _AUTHORIZATION.fullmatch(next(iter(headers.get("authorization", ())), "").strip())
    return match["service"] if match else ""


def _parse_authorization(headers: Mapping[str, Sequence[str]]) -> re.Match[str]:
    values = headers.get("authorization", ())
    if not values:
        raise ProtocolError(
            ErrorCode.MissingAuthenticationTokenException, "Missing Authentication Token"
        )
    match = _AUTHORIZATION.fullmatch(values[0].strip())
    if len(values) > 1 or match is None:
        raise ProtocolError(
            ErrorCode.IncompleteSignatureException,
            "Authorization header requires 'Credential', 'Signature' and 'SignedHeaders' "
            f"parameters in the form of {_ALGORITHM}.",
        )
    return match


def _check_coverage(
    signed: list[str], headers: Mapping[str, Sequence[str]], must_sign: frozenset[str]
) -> None:
    if signed != sorted(set(signed)):
        raise ProtocolError(
            ErrorCode.IncompleteSignatureException,
            "SignedHeaders must be sorted and name each header once.",
        )
    lacking = must_sign - set(signed)
    if lacking:
        raise ProtocolError(
            ErrorCode.InvalidSignatureException,
            f"These headers must be signed: {', '.join(sorted(lacking))}",
        )
    missing = [name for name in signed if name not in headers]
    if missing:
        raise ProtocolError(
            ErrorCode.IncompleteSignatureException,
            f"These signed headers are missing: {', '.join(missing)}",
        )
    digest = headers.get("x-amz-content-sha256", ("",))[0]
    if digest and not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ProtocolError(
            ErrorCode.InvalidSignatureException,
            "x-amz-content-sha256 must be the SHA-256 of the body.",
        )


def _single_value(headers: Mapping[str, Sequence[str]], name: str) -> str:
    values = headers[name]
    if len(values) != 1:
        raise ProtocolError(
            ErrorCode.IncompleteSignatureException, f"got {len(values)} headers {name}, wanted one"
        )
    return values[0]


def _check_date(stamp: str, day: str, now_s: float) -> None:
    try:
        if _STAMP.fullmatch(stamp) is None:
            raise ValueError(stamp)  # noqa: TRY301 - the other half of the same check
        at = datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        raise ProtocolError(
            ErrorCode.IncompleteSignatureException,
            f"Date must be in ISO-8601 'basic format': got {stamp!r}",
        ) from None
    if not stamp.startswith(day):
        raise ProtocolError(
            ErrorCode.InvalidSignatureException,
            "Date in Credential scope does not match the date of the request.",
        )
    if at < now_s - MAX_SKEW_S:
        raise ProtocolError(
            ErrorCode.InvalidSignatureException,
            f"Signature expired: {stamp} is more than 5 minutes old.",
        )
    if at > now_s + MAX_SKEW_S:
        raise ProtocolError(
            ErrorCode.InvalidSignatureException,
            f"Signature not yet current: {stamp} is more than 5 minutes ahead.",
        )


def _canonical_request(
    headers: Mapping[str, Sequence[str]], signed: list[str], body: bytes, line: RequestLine
) -> bytes:
    lines = [
        f"{name}:{','.join(_BLANKS.sub(' ', one.strip(_BLANK)) for one in headers[name])}"
        for name in signed
    ]
    digest = hashlib.sha256(body).hexdigest()
    text = "\n".join([*lines, "", ";".join(signed), digest])
    # The values were decoded as Latin-1, so this gives back the bytes that were sent.
    opening = f"{line.method}\n{line.canonical_path}\n{line.canonical_query}\n"
    return opening.encode() + text.encode("latin-1")


def _signature(secret: str, scope: tuple[str, str, str], stamp: str, canonical: bytes) -> str:
    digest = hashlib.sha256(canonical).hexdigest()
    text = "\n".join([_ALGORITHM, stamp, "/".join((*scope, "aws4_request")), digest])
    key = f"AWS4{secret}".encode()
    for part in (*scope, "aws4_request", text):
        # Not hmac.digest(): OpenSSL releases the GIL for it, so other threads run in between, for
        # milliseconds at a time, which shows in how long a check takes.
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key.hex()
