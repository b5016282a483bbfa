"""What can be configured?  Environment variables, each with a safe default.

``STEPYARD_DATA`` data folder; ``STEPYARD_DATABASE_URL`` postgres://user:password@host:port/name
instead of the SQLite file in it; ``STEPYARD_SECRET`` master secret instead of the file;
``STEPYARD_HOSTS`` further host names, by comma; ``STEPYARD_REGION`` the region pages work in;
``STEPYARD_FUNCTIONS`` functions as a JSON object; ``STEPYARD_EXPRESS_EVENTS`` 1: Express
executions are told to event rules, too; ``STEPYARD_MAIL`` the mail server for notifications,
smtp://user:password@host:port/?from=address; ``STEPYARD_METRICS_TOKEN`` what Prometheus must
show at ``/metrics``, which without it answers this machine only; ``STEPYARD_LEASE_S`` seconds after
which a worker of a team that is not heard of is taken for dead; ``STEPYARD_RETENTION_DAYS`` days
after which ended executions are removed; ``STEPYARD_DATABASE_CONNECTIONS`` of one process to
PostgreSQL at most; ``STEPYARD_LOG`` json: the log as JSON lines.

(Above 300 lines: one place for every setting, as Django has it.)
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from console import journal
from console.data_folder import data_folder, derived, derived_text, master_secret
from console.samples.functions import FUNCTIONS as SAMPLE_FUNCTIONS

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = data_folder()
TESTING = "pytest" in sys.modules or "test" in sys.argv[1:2]

# Tests must not touch the user's folder, and a secret that is never stored guards nothing.
_MASTER = os.urandom(32) if TESTING else master_secret(DATA_DIR)
SECRET_KEY = derived_text(_MASTER, "django")
STEPYARD_KEY_SECRET = derived(_MASTER, "access-keys")
STEPYARD_TOKEN_KEY = derived(_MASTER, "task-tokens")
STEPYARD_PAGING_KEY = derived(_MASTER, "paging")

DEBUG = False
STEPYARD_HTTPS = os.environ.get("STEPYARD_HTTPS", "") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", ".localhost"]
ALLOWED_HOSTS += [host for host in os.environ.get("STEPYARD_HOSTS", "").split(",") if host]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_ace",
    "lucide",
    "csp",
    "console",
]
MIDDLEWARE = [
    "console.web.requests.named",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {"stepyard": "console.web.templatetags.stepyard"},
        },
    },
]

# -- database --------------------------------------------------------------------------------------


def _sqlite() -> dict[str, Any]:
    """One durable file: write-ahead log, every commit flushed, writers queue instead of failing."""
    pragmas = (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=20000;"
        "PRAGMA cache_size=-8000; PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=4000;"
    )
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATA_DIR / "stepyard.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": pragmas},
        "TEST": {"NAME": Path(tempfile.gettempdir()) / f"stepyard-test-{os.getpid()}.sqlite3"},
    }


_CONNECTIONS = int(os.environ.get("STEPYARD_DATABASE_CONNECTIONS", "12"))


def _postgres(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        msg = f"STEPYARD_DATABASE_URL: got {parts.scheme}://, wanted postgres://user:pw@host/name"
        raise ValueError(msg)
    query = dict(pair.split("=", 1) for pair in parts.query.split("&") if "=" in pair)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(query.get("host", parts.hostname or "")),
        "PORT": str(parts.port or ""),
        "CONN_HEALTH_CHECKS": True,
        # a hundred threads may want one now and then; the server has a hundred for all processes
        "OPTIONS": {} if TESTING else {"pool": {"min_size": 1, "max_size": _CONNECTIONS}},
    }


_URL = os.environ.get("STEPYARD_DATABASE_URL")
DATABASES = {"default": _postgres(_URL) if _URL else _sqlite()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# -- people ----------------------------------------------------------------------------------------

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
SESSION_COOKIE_NAME = "stepyard_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 14 * 24 * 3600
CSRF_COOKIE_NAME = "stepyard_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "console.web.views.errors.csrf_failure"
# A team's host speaks HTTPS (STEPYARD_HTTPS=1); the embedded default is loopback without it.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = STEPYARD_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]  # asked from beside the server, without TLS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if STEPYARD_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = STEPYARD_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if STEPYARD_HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = (
    [] if STEPYARD_HTTPS else ["security.W004", "security.W008", "security.W012", "security.W016"]
)

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "worker-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "object-src": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

# -- pages -----------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 3600
DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * 1024 * 1024
LOGGING = journal.configure(os.environ.get("STEPYARD_LOG") or "text")

# -- Stepyard --------------------------------------------------------------------------------------

STEPYARD_REGION = os.environ.get("STEPYARD_REGION", "us-east-1")
STEPYARD_ACCOUNT = "123456789012"
STEPYARD_LIMITS = os.environ.get("STEPYARD_LIMITS", "aws")  # aws | 2019
STEPYARD_ACCEPT_ANY_KEY = False  # only ``up --insecure-accept-any-key`` says otherwise
# what each process computes, for whoever finds it dead
STEPYARD_WITNESS = (Path(tempfile.gettempdir()) if TESTING else DATA_DIR) / "stepyard-computing"
# layouts of workflows that were drawn; tests choose a folder of their own
STEPYARD_LAYOUTS = None if TESTING else DATA_DIR / "layouts"
STEPYARD_LEASE_S = float(os.environ.get("STEPYARD_LEASE_S", "10"))  # of a worker of a team
STEPYARD_MAX_REQUEST_BYTES = 1_048_576


def _functions() -> dict[str, str]:
    """Functions of the samples, of ``DATA/functions.json`` and of the environment.

    Later ones win.
    """
    functions = dict(SAMPLE_FUNCTIONS)
    path = DATA_DIR / "functions.json"
    if not TESTING and path.exists():
        functions |= json.loads(path.read_text(encoding="utf-8"))
    given: dict[str, str] = json.loads(os.environ.get("STEPYARD_FUNCTIONS", "{}"))
    return functions | given


STEPYARD_FUNCTIONS = _functions()


def _quotas() -> dict[str, Any]:
    """What differs from AWS's quotas: ``DATA/quotas.json`` and the environment, which wins."""
    path = DATA_DIR / "quotas.json"
    kept = json.loads(path.read_text("utf-8")) if not TESTING and path.exists() else {}
    given: dict[str, Any] = json.loads(os.environ.get("STEPYARD_QUOTAS", "{}"))
    return kept | given


STEPYARD_QUOTAS = _quotas()


def _targets() -> dict[str, dict[str, Any]]:
    """Where calls to AWS services go: ``DATA/targets.json`` and the environment, which wins."""
    path = DATA_DIR / "targets.json"
    kept = json.loads(path.read_text("utf-8")) if not TESTING and path.exists() else {}
    given: dict[str, dict[str, Any]] = json.loads(os.environ.get("STEPYARD_TARGETS", "{}"))
    return kept | given


STEPYARD_TARGETS = _targets()


def _mocks() -> dict[str, Any]:
    """The mock configuration of Step Functions Local, from where it says or the data folder."""
    named = os.environ.get("SFN_MOCK_CONFIG")
    path = Path(named) if named else DATA_DIR / "MockConfigFile.json"
    if TESTING or not (named or path.exists()):
        return {}
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


STEPYARD_MOCKS = _mocks()
STEPYARD_EXPRESS_EVENTS = os.environ.get("STEPYARD_EXPRESS_EVENTS") == "1"  # AWS tells none


def _mail(url: str) -> dict[str, Any]:
    """Read ``smtp[s]://user:password@host:port/?from=address``; smtps is TLS, else STARTTLS."""
    parts = urlsplit(url)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        msg = f"STEPYARD_MAIL: got {parts.scheme}://, wanted smtp://user:pw@host:port/?from=address"
        raise ValueError(msg)
    return {
        "host": parts.hostname,
        "port": parts.port or (465 if parts.scheme == "smtps" else 587),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "secure": parts.scheme == "smtps",
        "sender": dict(parse_qsl(parts.query)).get("from", f"stepyard@{parts.hostname}"),
    }


STEPYARD_MAIL = os.environ.get("STEPYARD_MAIL", "")
if STEPYARD_MAIL:
    _SMTP = _mail(STEPYARD_MAIL)
    EMAIL_HOST, EMAIL_PORT = _SMTP["host"], _SMTP["port"]
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _SMTP["user"], _SMTP["password"]
    EMAIL_USE_SSL = _SMTP["secure"]
    EMAIL_USE_TLS = not EMAIL_USE_SSL and bool(EMAIL_HOST_USER)
    DEFAULT_FROM_EMAIL = _SMTP["sender"]
    EMAIL_TIMEOUT = 15
STEPYARD_METRICS_TOKEN = os.environ.get("STEPYARD_METRICS_TOKEN", "")


def _retention_days() -> float | None:
    """Return after how many days ended executions are removed; None: they are kept."""
    text = os.environ.get("STEPYARD_RETENTION_DAYS", "")
    if not text:
        return None
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 0 < days < _MOST_DAYS:
        msg = f"STEPYARD_RETENTION_DAYS: got {text!r}, wanted a number of days above 0"
        raise ValueError(msg)
    return days


_MOST_DAYS = 36_500
STEPYARD_RETENTION_DAYS = _retention_days()
STEPYARD_URL = os.environ.get("STEPYARD_URL", "")  # of the API, for nested executions; ``up`` knows
