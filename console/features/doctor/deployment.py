"""Check a deployment: settings, connections, and the state of its processes.

Each check yields findings: a fact, and one sentence on the fix if it is wrong. Warnings of ``check
--deploy`` are included. Checks of the database come last, and are skipped while it is unusable.
"""

from __future__ import annotations

import http.client
import ipaddress
import shutil
import ssl
import stat
import time
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks, mail
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http.request import validate_host

from console.config.public_address import public_names
from console.config.version import server_version
from console.db import clock, writer
from console.feature import Hook, hooked
from console.store.state import health, late_schedules
from console.store.tasks.workers import list_workers, version_of_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


FEW_DAYS = 14
"""A certificate that ends sooner is worth a warning."""
_ANSWER_S = 5.0
_DAY_S = 86_400


class Verdict(StrEnum):
    """Verdict of a check, the mildest first."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check. ``mend``: one sentence on the fix, "" if none is needed."""

    check: str
    verdict: Verdict
    text: str
    mend: str = ""

    def __str__(self) -> str:
        mend = f" {self.mend}" if self.mend else ""
        return f"{self.verdict:<8} {self.check:<12} {self.text}{mend}"


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections of PostgreSQL: allowed for the role, and used by ``others``, other programs.

    ``processes``: processes of this server that are connected, the doctor not included.
    """

    allowed: int
    others: int
    processes: int


@dataclass(frozen=True, slots=True)
class Questions:
    """PostgreSQL checks that the start of a process also makes.

    ``reach``: return why the database cannot be used, "" if it can. ``count``: its connections.
    """

    reach: Callable[[], str]
    count: Callable[[], Connections]


_CHECK_OF = {
    "stateyard.W001": "https",
    "stateyard.W002": "secret",
    "stateyard.W003": "address",
    "stateyard.W004": "database",
    "stateyard.W005": "files",
    "stateyard.W006": "proxies",
}
"""Id of a warning of ``check --deploy`` -> the check it belongs to; W007 is counted anew here."""
_COUNTED_HERE = {"stateyard.W007"}
_OF_TEAMS = {"stateyard.W001", "stateyard.W002", "stateyard.W004"}
"""Warnings that a server for one person does not need."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SECRET_FILES = ("targets.json", "oidc.json")
_OLDEST_POSTGRES, _SUPPORTED_POSTGRES = 14, 15
_LEAST_PROCESSES = 3
"""A web process and two workers."""
_BESIDE_POOL = 2
_MAIL_S = 5
_CLOCK_MS, _CLOCK_JUMP_MS = 1_000, 60_000
_LITTLE_DISK = 1024**3


def list_findings(questions: Questions) -> Iterator[Finding]:
    """Run all checks: settings first, then connections, the database last."""
    yield from _check_warnings()
    for check in (_hosts, _public_address, _web_process, _config_files, _disk, _mail):
        yield from check()
    problem = questions.reach()
    if problem:
        mend = "Correct STATEYARD_DATABASE_URL, or start the database."
        yield Finding("database", Verdict.FAILED, f"{problem.rstrip('.')}.", mend)
        for name in ("clock", "connections", "migrations", "queue", "versions", "workers"):
            yield Finding(name, Verdict.SKIPPED, "The database cannot be asked.")
        return
    for check in (_postgres, lambda: _connections(questions), *_ASKING, _of_features):
        try:
            yield from check()
        except Error as error:
            line = " ".join(str(error).split())
            text = f"A question to the database failed: {line}."
            yield Finding("database", Verdict.FAILED, text, "Look at the log of PostgreSQL.")


def worst_of(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict; a skipped check counts as passed."""
    verdicts = {finding.verdict for finding in findings}
    return next(
        (each for each in (Verdict.FAILED, Verdict.WARNING) if each in verdicts), Verdict.OK
    )


def _is_team() -> bool:
    return not writer.is_embedded()


def _is_personal() -> bool:
    """Whether the server is for one person on one machine: SQLite and loopback only."""
    return not _is_team() and not settings.STATEYARD_HOSTS


# -- settings --------------------------------------------------------------------------------------


def _check_warnings() -> Iterator[Finding]:
    """Yield the warnings of ``check --deploy``, and the passed checks."""
    warned = set()
    for warning in checks.run_checks(include_deployment_checks=True):
        if warning.is_silenced() or warning.id in _COUNTED_HERE:
            continue
        name = _CHECK_OF.get(warning.id or "", "settings")
        warned.add(name)
        if warning.id in _OF_TEAMS and _is_personal():
            yield Finding(name, Verdict.SKIPPED, "The server is for one person on this machine.")
        else:
            yield Finding(name, Verdict.WARNING, warning.msg, warning.hint or "")
    proxies = settings.STATEYARD_PROXIES
    states = {
        "settings": "Django has no warning.",
        "https": "STATEYARD_HTTPS is set.",
        "secret": "STATEYARD_SECRET is set.",
        "files": "No secret file of the data folder is open to others.",
        "proxies": f"{proxies} may set X-Forwarded-For."
        if proxies
        else "Without HTTPS none is needed.",
    }
    for name, text in states.items():
        if name not in warned:
            yield Finding(name, Verdict.OK, text)


def _hosts() -> Iterator[Finding]:
    hosts = settings.STATEYARD_HOSTS
    inside = host_of(settings.STATEYARD_URL)
    if "*" in hosts:
        text = "STATEYARD_HOSTS has *: a request may name any host, and links repeat it."
        yield Finding("hosts", Verdict.WARNING, text, "List the names of this server instead.")
    elif inside and not validate_host(inside, settings.ALLOWED_HOSTS):
        text = f"STATEYARD_URL names {inside}, and STATEYARD_HOSTS does not: it answers 400."
        yield Finding("hosts", Verdict.FAILED, text, f"Add {inside} to STATEYARD_HOSTS.")
    elif _is_team() and not public_names():
        text = "STATEYARD_HOSTS names no host that people use: requests to others answer 400."
        yield Finding("hosts", Verdict.WARNING, text, "Add the name in the address of the proxy.")
    else:
        yield Finding("hosts", Verdict.OK, f"{', '.join(hosts) or 'Loopback names'} answer.")


def _config_files() -> Iterator[Finding]:
    """Yield files of STATEYARD_CONFIG with secrets that other users may read."""
    folder: Path | None = settings.STATEYARD_CONFIG
    if folder is None:
        return
    files = [folder / name for name in _SECRET_FILES if (folder / name).is_file()]
    readable = [f"{file}" for file in files if file.stat().st_mode & _OTHERS]
    if readable:
        text = f"Other users of this machine may read {', '.join(readable)}."
        mend = "chmod 600 and chown to the server's user make them private."
        yield Finding("files", Verdict.WARNING, text, mend)


# -- what is reached -------------------------------------------------------------------------------


def _public_address() -> Iterator[Finding]:
    """Open the public URL as browsers do."""
    names = public_names()
    if not settings.STATEYARD_HTTPS or not names:
        yield Finding("tls", Verdict.SKIPPED, "No HTTPS address is set.")
        return
    answer = open_page(names[0])
    if answer.problem:
        verdict = Verdict.FAILED if answer.reached else Verdict.WARNING
        yield Finding("tls", verdict, answer.problem, answer.mend)
    elif answer.days < FEW_DAYS:
        text = f"The certificate of {names[0]} ends in {answer.days} days."
        yield Finding("tls", Verdict.WARNING, text, "Renew it.")
    else:
        text = f"https://{names[0]} answers; its certificate ends in {answer.days} days."
        yield Finding("tls", Verdict.OK, text)


def _web_process() -> Iterator[Finding]:
    address = settings.STATEYARD_URL
    if not address:
        yield Finding("web", Verdict.SKIPPED, "STATEYARD_URL is not set.")
        return
    problem = ask_web(address)
    if problem:
        text = f"STATEYARD_URL, {address}: {problem}."
        mend = "Start a web process, or correct STATEYARD_URL."
        yield Finding("web", Verdict.FAILED, text, mend)
    else:
        yield Finding("web", Verdict.OK, f"A web process answers at {address}.")


def _disk() -> Iterator[Finding]:
    folder = settings.DATA_DIR
    free = shutil.disk_usage(folder if folder.exists() else "/").free
    text = f"{free // 1024**2:,} MB are free in {folder}."
    mend = "Make room: the database of `up`, the journal of steps and layouts are there."
    if free < health.MIN_DISK:
        yield Finding("disk", Verdict.FAILED, text, mend)
    elif free < _LITTLE_DISK:
        yield Finding("disk", Verdict.WARNING, text, mend)
    else:
        yield Finding("disk", Verdict.OK, text)


def _mail() -> Iterator[Finding]:
    if not settings.STATEYARD_MAIL:
        yield Finding("mail", Verdict.SKIPPED, "STATEYARD_MAIL is not set: no mail is sent.")
        return
    server = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    sender = mail.get_connection("django.core.mail.backends.smtp.EmailBackend", timeout=_MAIL_S)
    try:
        sender.open()
    except (OSError, ValueError) as error:  # an SMTPException is an OSError
        text = f"The mail server {server} refuses: {type(error).__name__}."
        mend = "Correct host, port, user and password of STATEYARD_MAIL."
        yield Finding("mail", Verdict.FAILED, text, mend)
    else:
        yield Finding("mail", Verdict.OK, f"The mail server {server} takes mail.")
    finally:
        sender.close()


# -- the database ----------------------------------------------------------------------------------


def _postgres() -> Iterator[Finding]:
    """Check the version of PostgreSQL, and whether its connections are encrypted."""
    if not _is_team():
        return
    connection.ensure_connection()
    own = connection.connection
    major = own.info.server_version // 10_000
    if major < _SUPPORTED_POSTGRES:
        verdict = Verdict.FAILED if major < _OLDEST_POSTGRES else Verdict.WARNING
        text = f"PostgreSQL {major} receives no more fixes."
        yield Finding("database", verdict, text, "Upgrade PostgreSQL.")
    else:
        yield Finding("database", Verdict.OK, f"PostgreSQL {major} answers.")
    yield _encryption(own)


def _encryption(own: Any) -> Finding:
    """Return the finding on the encryption and the certificate of PostgreSQL's connections."""
    host = own.info.host
    mode = settings.DATABASES["default"]["OPTIONS"].get("sslmode", "prefer")
    if host.startswith("/") or is_loopback(own.info.hostaddr or host):
        return Finding("encryption", Verdict.OK, "PostgreSQL is on this machine.")
    mend = "Add sslmode=verify-full and sslrootcert to STATEYARD_DATABASE_URL."
    if not own.pgconn.ssl_in_use:
        text = f"Connections to PostgreSQL at {host} are not encrypted."
        return Finding("encryption", Verdict.WARNING, text, mend)
    if not mode.startswith("verify"):
        text = f"The certificate of PostgreSQL is not checked (sslmode={mode})."
        return Finding("encryption", Verdict.WARNING, text, mend)
    return Finding("encryption", Verdict.OK, f"Connections have TLS (sslmode={mode}).")


def _connections(questions: Questions) -> Iterator[Finding]:
    """Compare the connections of all processes with the number that PostgreSQL allows."""
    pool_size = _pool_size()
    if not pool_size:
        return
    counted = questions.count()
    processes = max(_LEAST_PROCESSES, counted.processes)
    each = pool_size + _BESIDE_POOL
    text = (
        f"{processes} processes take up to {processes * each} connections; PostgreSQL allows "
        f"{counted.allowed}, and other programs have {counted.others}."
    )
    if processes * each > counted.allowed - counted.others:
        mend = "Raise max_connections, or lower STATEYARD_DATABASE_CONNECTIONS."
        yield Finding("connections", Verdict.WARNING, text, mend)
    else:
        yield Finding("connections", Verdict.OK, text)


def _pool_size() -> int:
    """Return the maximum of pooled connections of a process, 0 without a pool (SQLite)."""
    pool = settings.DATABASES["default"].get("OPTIONS", {}).get("pool") or {}
    return int(pool.get("max_size", 0))


def _migrations() -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    loader = executor.loader
    pending = [
        migration.name for migration, _ in executor.migration_plan(loader.graph.leaf_nodes())
    ]
    later = sorted(
        name
        for app, name in loader.applied_migrations
        if app == "console" and (app, name) not in loader.disk_migrations
    )
    if pending:
        text = f"Pending migrations: {len(pending)}; the first is {pending[0]}."
        mend = "Start a process of this version: it migrates the tables."
        yield Finding("migrations", Verdict.WARNING, text, mend)
    elif later:
        text = f"A later version has migrated the tables: {later[-1]}."
        yield Finding("migrations", Verdict.WARNING, text, "Run the doctor of that version.")
    else:
        yield Finding("migrations", Verdict.OK, "No migration is pending.")


def _clock() -> Iterator[Finding]:
    offset_ms = clock.now_ms() - time.time_ns() // 1_000_000 if _is_team() else 0
    text = f"This machine's clock is {abs(offset_ms)} ms off the database's."
    mend = "Let NTP set the clocks of both machines."
    if abs(offset_ms) > _CLOCK_JUMP_MS:
        yield Finding("clock", Verdict.FAILED, text, mend)
    elif abs(offset_ms) > _CLOCK_MS:
        yield Finding("clock", Verdict.WARNING, text, mend)
    else:
        yield Finding("clock", Verdict.OK, text)


def _queue() -> Iterator[Finding]:
    now_ms = clock.now_ms()
    waiting = [work for work in health.list_waiting_work(now_ms) if work.count]
    oldest_ms = max((work.age_ms for work in waiting), default=0)
    amounts = ", ".join(f"{work.kind.lower()} {work.amount}" for work in waiting)
    text = f"Waiting work: {amounts}; the oldest for {oldest_ms / 1000:.1f} s."
    text = text if waiting else "No work waits."
    late_ms = late_schedules.stuck_delay(now_ms)
    if max(oldest_ms, late_ms) > health.LATE_MS:
        mend = "Start more workers, and look for errors in their logs."
        yield Finding("queue", Verdict.FAILED, text, mend)
    else:
        yield Finding("queue", Verdict.OK, text)


def _workers() -> Iterator[Finding]:
    if not _is_team():
        yield Finding("workers", Verdict.SKIPPED, "One process does all, its work included.")
        return
    listed = list_workers()
    living = [worker.row for worker in listed if worker.alive]
    problems = sorted({row.problem for row in living if row.problem})
    if not living:
        text = "No worker is alive: executions are accepted and wait."
        yield Finding("workers", Verdict.FAILED, text, "Start `manage.py worker`.")
    elif problems:
        text = f"A worker has a problem: {problems[0]}."
        yield Finding("workers", Verdict.WARNING, text, "Remove the cause on its machine.")
    elif len(living) < len(listed):
        text = (
            f"Living workers: {len(living)}; ended without a handover: {len(listed) - len(living)}."
        )
        yield Finding("workers", Verdict.WARNING, text, "Look for the cause in their logs.")
    else:
        yield Finding("workers", Verdict.OK, f"Living workers: {len(living)}.")


def _versions() -> Iterator[Finding]:
    """Compare the versions of the workers with the version of this program."""
    own = version_of_workers()
    others = {worker.row.version for worker in list_workers() if worker.alive} - {own}
    if others:
        text = f"This is {own}, and workers are {', '.join(sorted(others))}."
        yield Finding("versions", Verdict.WARNING, text, "Finish the upgrade of all processes.")
    else:
        yield Finding(
            "versions", Verdict.OK, f"This program and the workers are {server_version()}."
        )


def _of_features() -> Iterator[Finding]:
    for check in hooked(Hook.SERVER_CHECKS):
        for name, verdict, text, mend in check():
            yield Finding(name, Verdict(verdict), text, mend)


_ASKING: tuple[Callable[[], Iterator[Finding]], ...] = (
    *(_migrations, _clock, _queue, _workers, _versions),
)


# -- the public and internal URLs, opened as browsers and workers do -------------------------------


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
