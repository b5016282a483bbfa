"""Send requests to the Kubernetes API of a cluster at a configured address, as EKS does.

``targets.json``: ``"kubernetes": {"endpoints": ["https://ABC.gr7.us-east-1.eks.amazonaws.com"]}``.
The bearer token is the entry's ``"token"``, or a presigned STS GetCallerIdentity request for the
cluster, with the entry's ``profile``, its ``access_key_id`` and ``secret_access_key``, or the
environment's credentials. Only the cluster's own certificate authority is trusted.
"""

from __future__ import annotations

import base64
import re
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import botocore.session
from botocore.credentials import Credentials
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from django.conf import settings

import engine
from console.integrations import outbound, shapes, targets, web
from console.integrations.outcome import Failed, Succeeded
from console.integrations.redaction import redact, without_url_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.integrations.outcome import TaskAttempt

_LIMIT_S, _TOKEN_S = 60.0, 60
_PRINTABLE = re.compile(r"[!-~]+")


class NoAnswerError(Exception):
    """The cluster did not answer."""


class NotNamedError(NoAnswerError):
    """No entry of ``targets.json`` names the cluster."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of a cluster."""

    status: int
    reason: str
    text: str

    @property
    def value(self) -> Any:
        """Return the body: parsed JSON, else its text."""
        try:
            return engine.loads(self.text)
        except engine.JsonTextError:
            return self.text

    @property
    def result(self) -> str:
        """Return the response as the state's result."""
        members = {"ResponseBody": self.value, "StatusCode": self.status, "StatusText": self.reason}
        return engine.dumps(members)

    @property
    def outcome(self) -> Succeeded | Failed:
        """Return the outcome of the task for this answer."""
        if outbound.is_success(self.status):
            return Succeeded(self.result)
        return Failed(f"EKS.{self.status}", self.result)


def send_request(
    task: TaskAttempt,
    parameters: Mapping[str, Any],
    method: str,
    path: str,
    query: Mapping[str, list[str]] | None = None,
    body: Any = None,
    most: int = engine.MAX_BYTES,
) -> Answer:
    """Send a request to the cluster and return its answer; raise ``NoAnswerError``."""
    cluster = _cluster_entry(task, parameters["Endpoint"])
    url = parameters["Endpoint"].rstrip("/") + path
    url += f"?{urlencode(query, doseq=True)}" if query else ""
    token = str(cluster.get("token") or _token(parameters["ClusterName"], cluster))
    if not _PRINTABLE.fullmatch(token):
        raise NoAnswerError('The token of "kubernetes" in targets.json cannot be sent')
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    more: dict[str, Any] = {"headers": headers, "trust": _trust_store(parameters)}
    if body is not None:
        headers["Content-Type"] = _kind(method, body)
        more["content"] = (body if isinstance(body, str) else engine.dumps(body)).encode()
    limit = min(task.timeout_s + outbound.GRACE_S, _LIMIT_S) if task.timeout_s else _LIMIT_S
    try:
        answer = outbound.send_request(method, url, limit, most=most, **more)
        text = answer.body.decode("utf-8", "replace")
        return Answer(answer.status, answer.reason, redact(text, (token,)))
    except (outbound.CallError, ValueError) as error:
        reason = without_url_secrets(str(error)) or type(error).__name__
        message = f"Unable to execute HTTP request: {reason}"
        raise NoAnswerError(message) from None


def _kind(method: str, body: Any) -> str:
    """Return the Content-Type of a body: Kubernetes has several kinds of patches."""
    if method != "PATCH":
        return "application/json"
    listed = body.lstrip().startswith("[") if isinstance(body, str) else isinstance(body, list)
    return f"application/{'json' if listed else 'merge'}-patch+json"


def _cluster_entry(task: TaskAttempt, endpoint: str) -> Mapping[str, Any]:
    """Return the entry of ``targets.json`` for a cluster."""
    entry = targets.find_exact_entry(targets.KUBERNETES, task.machine)
    cluster = entry.target if entry else {}
    if web.origin_of(endpoint) not in {
        web.origin_of(address) for address in cluster.get("endpoints", ())
    }:
        where = 'the endpoints of "kubernetes" in targets.json'
        raise NotNamedError(f"'{'://'.join(web.origin_of(endpoint))}' is not among {where}")
    return cluster


def _trust_store(parameters: Mapping[str, Any]) -> str:
    """Return the cluster's certificate authority, the only trusted one."""
    if urlsplit(parameters["Endpoint"]).scheme == "http":
        return ""
    try:
        return _certificates(parameters["CertificateAuthority"])
    except (ValueError, ssl.SSLError):
        name = "CertificateAuthority"
        problem = f"The value of the field '{name}' has an invalid format: expected a certificate"
        raise shapes.ParametersError(problem) from None


@lru_cache(maxsize=64)
def _certificates(data: str) -> str:
    """Return certificates as PEM; raise ``ValueError`` or ``SSLError`` if there are none."""
    text = base64.b64decode(data, validate=True).decode("ascii")
    if not text:
        raise ValueError("no certificate")  # which would be: trust whom browsers trust
    ssl.create_default_context(cadata=text)
    return text


def _token(cluster: str, entry: Mapping[str, Any]) -> str:
    """Return the token that authenticates to EKS: a presigned GetCallerIdentity request."""
    session = _session(entry.get("profile"))
    key, secret = entry.get("access_key_id"), entry.get("secret_access_key")
    by = Credentials(key, secret) if key and secret else session.get_credentials()
    if by is None:
        raise NoAnswerError("Unable to load credentials to sign the cluster's token with")
    region = entry.get("region") or settings.STATEYARD_REGION
    host = f"sts.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    request = {
        "method": "GET",
        "url": f"https://{host}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": cluster},
        "context": {},
    }
    signer = RequestSigner(
        ServiceId("sts"), region, "sts", "v4", by, session.get_component("event_emitter")
    )
    url = signer.generate_presigned_url(
        request, region_name=region, expires_in=_TOKEN_S, operation_name=""
    )
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


@lru_cache(maxsize=16)
def _session(profile: str | None) -> Any:
    return botocore.session.Session(profile=profile)
