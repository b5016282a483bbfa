"""Open the server's public and internal URLs, as browsers and workers do."""

from __future__ import annotations

import http.client
import ipaddress
import ssl
import time
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

FEW_DAYS = 14
"""A certificate that ends sooner is worth a warning."""
_ANSWER_S = 5.0
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """The answer of the sign-in page. ``reached``: the connection was accepted.

    ``days``: how long its certificate is valid. ``problem``, ``mend``: "" if there is none.
    """

    reached: bool
    days: int = 0
    problem: str = ""
    mend: str = ""


def host_of(address: str | None) -> str:
    """Return the host of a URL, "" without one."""
    return urlsplit(address or "").hostname or ""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine: a loopback address or ``localhost``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_page(host: str) -> PageAnswer:
    """Open the sign-in page by HTTPS at a public name."""
    connection = http.client.HTTPSConnection(
        host, timeout=_ANSWER_S, context=ssl.create_default_context()
    )
    try:
        connection.connect()
        days = _days_left(connection.sock)
        connection.request("GET", "/login/")
        status = connection.getresponse().status
    except ssl.SSLCertVerificationError as error:
        problem = f"The certificate of {host} is not valid: {error.verify_message}."
        return PageAnswer(True, 0, problem, "Let the proxy send a valid certificate and its chain.")
    except (OSError, http.client.HTTPException) as error:
        problem = f"https://{host} does not answer from here: {type(error).__name__}."
        return PageAnswer(False, 0, problem, "Check DNS, the proxy and the firewall.")
    finally:
        connection.close()
    if status == HTTPStatus.MOVED_PERMANENTLY:
        problem = f"https://{host} redirects to itself."
        mend = "Let the proxy set X-Forwarded-Proto."
    elif status == HTTPStatus.BAD_REQUEST:
        problem = f"https://{host} is refused by its name."
        mend = "Let the proxy pass on Host unchanged."
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        problem = f"https://{host} answers {status}."
        mend = "Look at the logs of the proxy and of the web processes."
    else:
        problem = mend = ""
    return PageAnswer(True, days, problem, mend)


def _days_left(sock: object) -> int:
    certificate = sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
    ends = str((certificate or {}).get("notAfter", ""))
    return int((ssl.cert_time_to_seconds(ends) - time.time()) // _DAY_S) if ends else 0


def ask_web(address: str) -> str:
    """Return why no web process answers at an internal URL; "" if one does."""
    parts = urlsplit(address)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=_ANSWER_S)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"no answer, {type(error).__name__}"
    finally:
        connection.close()
    return f"the answer is {status}" if status != HTTPStatus.OK else ""
