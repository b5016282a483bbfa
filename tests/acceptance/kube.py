"""A server that speaks as much of the Kubernetes API as jobs and their logs need.

Jobs are made, told of, deleted; a test says how they end and what their containers wrote. Errors
are answered as Kubernetes does, with a Status.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

_JOBS = re.compile(r"/apis/batch/v1/namespaces/([^/]+)/jobs(?:/([^/]+))?")
_PODS = re.compile(r"/api/v1/namespaces/([^/]+)/pods(?:/([^/]+)/log)?")


@dataclass(frozen=True)
class Asked:
    """A request that came in."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


@dataclass
class Kube:
    """``ends``: the condition that jobs have from the second look on, "" for none.

    ``logs``: pod -> container -> text, or the status of an error. ``broken``: statuses that the
    next requests for a job are answered with. ``seen``: what was asked.
    """

    folder: Path | None = None
    ends: str = "Complete"
    logs: dict[str, dict[str, str | int]] = field(default_factory=dict)
    broken: list[int] = field(default_factory=list)
    jobs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    looks: dict[tuple[str, str], int] = field(default_factory=dict)
    seen: list[Asked] = field(default_factory=list)
    authority: str = ""

    def __enter__(self) -> Self:
        """Serve, with TLS if there is a folder for the certificate."""
        handler = type("Handler", (_Handler,), {"kube": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        scheme = "http"
        if self.folder is not None:
            scheme, self.authority = "https", _secured(self.server, self.folder)
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    def asked(self, method: str, part: str = "") -> list[Asked]:
        """Return the requests of a method whose path has a part."""
        return [
            request
            for request in list(self.seen)
            if request.method == method and part in request.path
        ]

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Return status and body."""
        job, pods = _JOBS.fullmatch(asked.path), _PODS.fullmatch(asked.path)
        if asked.headers.get("authorization", "").removeprefix("Bearer ") in ("", "None"):
            return _status(401, "Unauthorized", "Unauthorized")
        if job is not None and self.broken:
            return _status(self.broken.pop(0), "InternalError", "not now")
        if job is not None:
            return self._job(asked, unquote(job[1]), unquote(job[2] or ""))
        if pods is not None:
            return self._pods(asked, pods[2])
        return _status(404, "NotFound", "the server could not find the requested resource")

    def _job(self, asked: Asked, space: str, name: str) -> tuple[int, Any]:
        if asked.method == "POST":
            name = asked.body["metadata"].get("name") or f"made-{len(self.jobs)}"
            if (space, name) in self.jobs:
                return _status(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
            about = {**asked.body["metadata"], "name": name, "namespace": space, "uid": "u-1"}
            self.jobs[space, name] = {**asked.body, "metadata": about, "status": {}}
            return 201, self.jobs[space, name]
        if (space, name) not in self.jobs:
            return _status(404, "NotFound", f'jobs.batch "{name}" not found')
        if asked.method == "DELETE":
            del self.jobs[space, name]
            return 200, {"kind": "Status", "status": "Success"}
        self.looks[space, name] = self.looks.get((space, name), 0) + 1
        job = self.jobs[space, name]
        if self.ends and self.looks[space, name] > 1:
            others = {"type": "Suspended", "status": "False"}
            job = {**job, "status": {"conditions": [others, {"type": self.ends, "status": "True"}]}}
        return 200, job

    def _pods(self, asked: Asked, pod: str | None) -> tuple[int, Any]:
        if pod is None:
            items = [
                {
                    "metadata": {"name": name},
                    "spec": {"containers": [{"name": container} for container in containers]},
                }
                for name, containers in self.logs.items()
            ]
            return 200, {"kind": "PodList", "items": items}
        text = self.logs[pod][asked.query["container"][0]]
        if isinstance(text, int):
            return _status(text, "BadRequest", "container is waiting to start")
        return 200, text


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    kube: Kube

    def _serve(self) -> None:
        where = urlsplit(self.path)
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(text) if text else None
        asked = Asked(self.command, where.path, parse_qs(where.query), headers, body)
        self.kube.seen.append(asked)
        status, said = self.kube.answer(asked)
        data = (said if isinstance(said, str) else json.dumps(said)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _serve  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def _status(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    """Return an error as Kubernetes tells it."""
    told = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return code, {**told, "message": message, "reason": reason, "code": code}


def _secured(server: ThreadingHTTPServer, folder: Path) -> str:
    """Let a server speak TLS; return the certificate that proves it, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = dt.datetime.now(dt.UTC)
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(days=1))
    builder = builder.not_valid_after(now + dt.timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = builder.add_extension(host, critical=False).sign(key, hashes.SHA256())
    pem = signed.public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    kind = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, kind, plain)
    file = folder / "kube.pem"
    file.write_bytes(secret + pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return pem.decode()
