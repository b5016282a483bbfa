"""Verify AWS Signature Version 4 of a request, in its headers only.

``console.awsapi`` explains the scheme and what is refused. The order of the checks matters: until
the signature is compared, nothing may depend on whether the key exists. So ``may_use`` is called
first, but its result is used last.

A signing key is derived from key id, day, region and service by four HMACs. Signing keys of valid
signatures are cached, so that a client's next call needs one HMAC. The cache must not reveal which
keys are in use. So every signature is first compared with one made by the cached key, or by a dummy
key, and after a mismatch by the full derivation:

1. key X has been used: a wrong signature for X costs 1 + 5 HMACs, two comparisons;
2. key X is unused or does not exist: the same.

Source: AWS Identity and Access Management, "Create a signed AWS API request".
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
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
    "credentials file; `stateyard up --insecure-accept-any-key` takes any.)"
)
"""The error text of AWS, and the remedy on this server."""
EXPIRED_KEY = (
    "The security token included in the request is expired. (The access key has reached its expiry "
    "date: rotate it, or create another one.)"
)
"""Returned only to a caller with a valid signature."""
PRESIGNED = (
    "X-Amz-Signature: got a signature in the query, wanted one in the header Authorization: this "
    "server takes no presigned requests"
)
MUST_SIGN = frozenset({"host", "x-amz-date", "x-amz-target"})
_BLANK = " \t"
_BLANKS = re.compile(r"[ \t]+")
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS "
    "Secret Access Key and signing method. Consult the service documentation for details."
)
_signing_keys: dict[tuple[str, ...], bytes] = {}
"""(key id, day, region, service) -> signing key, for each key that has verified a signature."""
_MOST_KEYS = 1000
_NO_KEY = secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class RequestLine:
    """Method, path and query of a request, as sent."""

    method: str = "POST"
    path: str = "/"
    query: str = ""

    @property
    def canonical_path(self) -> str:
        """Return the path for the signature: its percent signs are escaped once more."""
        return quote(self.path, safe="/~")

    @property
    def canonical_query(self) -> str:
        """Return the query for the signature: normalized escapes, sorted."""
        fields = (field.partition("=") for field in self.query.split("&") if field)
        pairs = sorted((_escape(name), _escape(value)) for name, _, value in fields)
        return "&".join(f"{name}={value}" for name, value in pairs)


def _escape(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="~")


_ROOT = RequestLine()


@dataclass(frozen=True, slots=True)
class Signed:
    """A request with a valid signature."""

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
    """Check the signature of a request; raise a signature error of AWS.

    ``headers``: lower-case name -> values in their order. ``secret_for``: the secret that a key id
    has or would have. ``may_use``: whether the key exists and may be used. ``now_s``: epoch
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
    # The path is always signed. Where it names the action (CBOR) there is no such header.
    by_header = must_sign if line.path == "/" else must_sign - {"x-amz-target"}
    signed = _signed_names(credential["headers"], by_header)
    _check_coverage(signed, headers)
    stamp = _single_value(headers, "x-amz-date")
    _check_date(stamp, credential["day"], now_s)
    has_token = "x-amz-security-token" in headers  # this server issues no session tokens
    usable = may_use(credential["key"]) and not has_token
    scope = (credential["day"], credential["region"], credential["service"])
    text = _text_to_sign(scope, stamp, _canonical_request(headers, signed, body, line))
    if _is_signed_by_kept_key(credential, scope, text) and usable:
        return Signed(credential["key"], credential["region"])
    signing_key = _signing_key(secret_for(credential["key"]), scope)
    right = hmac.compare_digest(_digest(signing_key, text).hex(), credential["signature"])
    # An unknown key is refused before a wrong signature, as AWS does it, and after the same work.
    if not usable:
        raise ProtocolError(
            ErrorCode.UnrecognizedClientException,
            UNKNOWN_KEY,
        )
    if not right:
        raise ProtocolError(ErrorCode.InvalidSignatureException, _MISMATCH)
    if len(_signing_keys) >= _MOST_KEYS:
        _signing_keys.clear()
    _signing_keys[credential["key"], *scope] = signing_key
    return Signed(credential["key"], credential["region"])


def _is_signed_by_kept_key(
    credential: re.Match[str], scope: tuple[str, str, str], text: bytes
) -> bool:
    """Whether a signature is valid by a cached signing key."""
    signing_key = _signing_keys.get((credential["key"], *scope), _NO_KEY)
    return hmac.compare_digest(_digest(signing_key, text).hex(), credential["signature"])


def is_presigned(query: bytes) -> bool:
    """Whether a query has a signature: Version 4, or S3's older signature."""
    return b"X-Amz-Signature=" in query or b"AWSAccessKeyId=" in query


def claimed(part: str, headers: Mapping[str, Sequence[str]]) -> str:
    """Return the unverified ``key``, ``region`` or ``service`` of a request; "" without one."""
    match = _match_authorization(next(iter(headers.get("authorization", ())), ""))
    return match[part] if match else ""


def _match_authorization(text: str) -> re.Match[str] | None:
    return _AUTHORIZATION.fullmatch(text.strip())


def _parse_authorization(headers: Mapping[str, Sequence[str]]) -> re.Match[str]:
    values = headers.get("authorization", ())
    if not values:
        raise ProtocolError(
            ErrorCode.MissingAuthenticationTokenException, "Missing Authentication Token"
        )
    match = _match_authorization(values[0])
    if len(values) > 1 or match is None:
        raise ProtocolError(
            ErrorCode.IncompleteSignatureException,
            "Authorization header requires 'Credential', 'Signature' and 'SignedHeaders' "
            f"parameters in the form of {_ALGORITHM}.",
        )
    return match


def _signed_names(listed: str, must_sign: frozenset[str]) -> tuple[str, ...]:
    """Return the names in SignedHeaders; raise an error if a required header is missing."""
    signed = tuple(listed.split(";"))
    if list(signed) != sorted(set(signed)):
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
    return signed


def _check_coverage(signed: Sequence[str], headers: Mapping[str, Sequence[str]]) -> None:
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
    headers: Mapping[str, Sequence[str]], signed: Sequence[str], body: bytes, line: RequestLine
) -> bytes:
    lines = [
        f"{name}:{','.join([_fold_blanks(value) for value in headers[name]])}" for name in signed
    ]
    digest = hashlib.sha256(body).hexdigest()
    text = "\n".join([*lines, "", ";".join(signed), digest])
    # The values were decoded as Latin-1, so this gives back the bytes that were sent.
    opening = f"{line.method}\n/\n\n"
    if line.path != "/" or line.query:
        opening = f"{line.method}\n{line.canonical_path}\n{line.canonical_query}\n"
    return opening.encode() + text.encode("latin-1")


def _fold_blanks(value: str) -> str:
    """Return a header's value as signed: trimmed, with runs of blanks folded to a single blank."""
    value = value.strip(_BLANK)
    return _BLANKS.sub(" ", value) if "  " in value or "\t" in value else value


def _text_to_sign(scope: tuple[str, str, str], stamp: str, canonical: bytes) -> bytes:
    digest = hashlib.sha256(canonical).hexdigest()
    return "\n".join([_ALGORITHM, stamp, "/".join((*scope, "aws4_request")), digest]).encode()


def _signing_key(secret: str, scope: tuple[str, str, str]) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (*scope, "aws4_request"):
        key = _digest(key, part.encode())
    return key


def _digest(key: bytes, text: bytes) -> bytes:
    # Not hmac.digest(): OpenSSL releases the GIL for it, so other threads run in between, for
    # milliseconds at a time, which shows in how long a check takes.
    return hmac.new(key, text, "sha256").digest()
