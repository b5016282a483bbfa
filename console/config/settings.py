"""The settings of the server: Django's, and an environment variable for each of Stateyard's own.

Each has a safe default. ``docs/reference/settings.md`` describes the variables for operators;
``console.config.environment`` reads and validates them. Main ones:

* ``STATEYARD_DATA``: data folder; ``STATEYARD_DATABASE_URL``: PostgreSQL instead of SQLite;
* ``STATEYARD_SECRET``: master secret instead of the file ``secret``;
* ``STATEYARD_HOSTS``, ``STATEYARD_PROXIES``, ``STATEYARD_HTTPS``: names and proxies of the server;
* ``STATEYARD_FUNCTIONS``, ``STATEYARD_TARGET_HOSTS``: what Tasks call, and what owners may set;
* ``STATEYARD_OIDC``, ``STATEYARD_PASSWORDS``, ``STATEYARD_TRUSTED_USER_HEADER``: ways to sign in;
* ``STATEYARD_MAIL``, ``STATEYARD_METRICS_TOKEN``, ``STATEYARD_AUDIT_STREAM``: mail and monitoring;
* ``STATEYARD_RETENTION_DAYS``, ``STATEYARD_AUDIT_RETENTION_DAYS``: when old rows are deleted.

The variables of Step Functions Local are read by ``console.config.local_options``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from console.config import (
    environment,
    local_options,
    logging_setup,
    oidc,
    quotas,
)
from console.config.data_folder import (
    data_folder,
    database_file,
    derive_key,
    master_secret,
)
from console.config.database_address import parse_database_address
from console.config.environment import SettingError, StartupFile
from console.config.functions_file import FunctionsFile
from console.db import postgres
from console.features import NAMES as FEATURES
from console.samples.functions import FUNCTIONS as SAMPLE_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR = data_folder()
STATEYARD_CONFIG = environment.read_folder("STATEYARD_CONFIG")
_CONFIG_DIR = STATEYARD_CONFIG or DATA_DIR  # of the files that only operators write


def _page_folder(name: str) -> Path:
    """Return the folder of templates or static files: in the wheel, or at the top of a clone."""
    installed = Path(__file__).resolve().parents[1] / name
    return installed if installed.is_dir() else BASE_DIR / name


_MASTER = master_secret(DATA_DIR)
SECRET_KEY = derive_key(_MASTER, "django").hex()
STATEYARD_KEY_SECRET = derive_key(_MASTER, "access-keys")
STATEYARD_TOKEN_KEY = derive_key(_MASTER, "task-tokens")
STATEYARD_PAGING_KEY = derive_key(_MASTER, "paging")
STATEYARD_SECOND_FACTOR_KEY = derive_key(_MASTER, "second-factors")
STATEYARD_SEAL_KEY = derive_key(_MASTER, "project-secrets")

DEBUG = False
STATEYARD_HTTPS = environment.read_switch("STATEYARD_HTTPS")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", ".localhost"]
STATEYARD_HOSTS = environment.read_hosts("STATEYARD_HOSTS")
ALLOWED_HOSTS += STATEYARD_HOSTS
STATEYARD_PROXIES = environment.read_proxies("STATEYARD_PROXIES")

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
    "console.web.core.middleware.request_id_middleware",
    # It pads each response by a random length (against BREACH); the CSRF token is also masked anew
    # in each response. Responses of the AWS API do not pass through here.
    "django.middleware.gzip.GZipMiddleware",
    "console.web.core.middleware.BrotliMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",  # above the policy, which is of pages alone
    "console.web.core.static_files.BundleMiddleware",
    "csp.middleware.CSPMiddleware",
    "console.web.core.middleware.former_session_middleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "console.web.core.middleware.SignInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "console.web.core.rights.RightsMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [_page_folder("templates")],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {"stateyard": "console.web.templatetags.stateyard"},
        },
    },
]

# -- database --------------------------------------------------------------------------------------


def _sqlite() -> dict[str, Any]:
    """Configure one durable file: write-ahead log, every commit flushed, writers queue.

    All connections share 256 MiB of cache, because ``soft_heap_limit`` applies to the process.
    """
    pragmas = (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=20000;"
        "PRAGMA cache_size=-8000; PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=4000;"
        "PRAGMA soft_heap_limit=268435456;"
    )
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": database_file(DATA_DIR),
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": pragmas},
    }


# The number of executions after which psycopg prepares a statement automatically. Django's default,
# None, would also prevent psycopg from preparing statements on request.
_NEVER = 1_000_000
_CONNECTIONS = environment.read_whole_number("STATEYARD_DATABASE_CONNECTIONS", 12, 1, 1000)
_POOL = {
    "connection_class": postgres.WatchedConnection,
    # a hundred threads may want one now and then; the server has a hundred for all processes
    "min_size": 1,
    "max_size": _CONNECTIONS,
    "max_idle": 2.0,  # seconds after which an unused connection is closed, for other processes
    "timeout": 10.0,  # seconds that a thread waits for one
    # Seconds after which the pool gives up; who asks next begins anew. By default it tries for five
    # minutes at growing intervals: after an outage of one minute the next try came a minute later.
    "reconnect_timeout": 5.0,
}


def _postgres(url: str) -> dict[str, Any]:
    parameters = parse_database_address("STATEYARD_DATABASE_URL", url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parameters.pop("dbname"),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": parameters.pop("port", ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            **postgres.TIMEOUTS,
            **parameters,
            "pool": _POOL,
            "prepare_threshold": _NEVER,
        },
    }


_URL = environment.read_text("STATEYARD_DATABASE_URL")
DATABASES = {"default": _postgres(_URL) if _URL else _sqlite()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# -- people ----------------------------------------------------------------------------------------

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("username",)},
    },
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_RESET_TIMEOUT = 3600  # seconds that a link for a new password works
SESSION_COOKIE_NAME = "stateyard_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 14 * 24 * 3600
CSRF_COOKIE_NAME = "stateyard_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "console.web.core.error_views.csrf_failure"
# A team's host speaks HTTPS (STATEYARD_HTTPS=1); the embedded default is loopback without it.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = STATEYARD_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]  # health probes on the same machine, without TLS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if STATEYARD_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = STATEYARD_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if STATEYARD_HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
# stateyard.W001 says once, by the variable to set, what these say of four settings that follow it.
SILENCED_SYSTEM_CHECKS = (
    [] if STATEYARD_HTTPS else ["security.W004", "security.W008", "security.W012", "security.W016"]
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
STATICFILES_DIRS = [_page_folder("static")]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "console.web.core.static_files.LoadedFinder",
]
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 3600
WHITENOISE_ALLOW_ALL_ORIGINS = False
DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * 1024 * 1024
LOGGING = logging_setup.configure(environment.read_text("STATEYARD_LOG", "text"))

# -- Stateyard -------------------------------------------------------------------------------------

STATEYARD_REGION = environment.read_region("STATEYARD_REGION", "us-east-1")
STATEYARD_ACCOUNT = local_options.read_account("123456789012")
STATEYARD_LIMITS = environment.read_choice("STATEYARD_LIMITS", ("aws", "2019"), "aws")
environment.read_choice("STATEYARD_PROCESSORS", ("one", "all"), "one")  # ``up`` itself reads it
STATEYARD_ACCEPT_ANY_KEY = False  # only ``up --insecure-accept-any-key`` says otherwise
STATEYARD_ALLOW_RESET = False  # only ``up --allow-reset`` says otherwise
# crash journal: what each process was computing when it died
STATEYARD_CRASH_JOURNAL = DATA_DIR / "stateyard-computing"
STATEYARD_LAYOUTS: Path | None = DATA_DIR / "layouts"  # of workflows that were drawn; None: nowhere
STATEYARD_LEASE_S = environment.read_number("STATEYARD_LEASE_S", 10, 1, 3600, "seconds")
STATEYARD_MAX_REQUEST_BYTES = 1_048_576


class _Shape:
    """A model of ``setting_shapes`` by name, imported when there is an object to validate.

    Importing pydantic takes a tenth of the start of a command; most servers have none of these
    files.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def validate_python(self, value: Any, /, *, strict: bool) -> None:
        """Check a value; raise pydantic's ``ValidationError``."""
        from console.config import setting_shapes

        getattr(setting_shapes, self._name).validate_python(value, strict=strict)


def _kept(name: str, shape: _Shape) -> dict[str, Any]:
    """Return the object in a configuration file, {} if it does not exist."""
    return environment.read_json_file(_CONFIG_DIR / name, shape)


def _functions() -> FunctionsFile:
    """Return ``DATA/functions.json``, read again when it changes; the environment wins."""
    shape = _Shape("FUNCTIONS")
    overrides = environment.read_json_variable("STATEYARD_FUNCTIONS", shape)
    return FunctionsFile(_CONFIG_DIR / "functions.json", shape, overrides)


STATEYARD_FUNCTIONS: Mapping[str, Any] = _functions()
# the maximum of function processes; 0: functions run in this process, unless an entry differs
STATEYARD_FUNCTION_PROCESSES = environment.read_whole_number(
    "STATEYARD_FUNCTION_PROCESSES", 16, 0, 1000
)
STATEYARD_FUNCTION_FOLDERS = environment.read_folders("STATEYARD_FUNCTION_FOLDERS")
STATEYARD_TARGET_HOSTS = environment.read_hosts("STATEYARD_TARGET_HOSTS") or ["*"]
STATEYARD_FETCH_PROFILES = environment.read_profiles("STATEYARD_FETCH_PROFILES")
STATEYARD_SAMPLE_FUNCTIONS = SAMPLE_FUNCTIONS  # for sample machines only; ``up --empty``: none


def _quotas() -> dict[str, Any]:
    """Return the changed quotas: ``DATA/quotas.json``; the environment wins."""
    entries = _kept("quotas.json", _Shape("OBJECT"))
    overrides = environment.read_json_variable("STATEYARD_QUOTAS", _Shape("OBJECT"))
    quotas.check_quotas(entries, str(_CONFIG_DIR / "quotas.json"))
    quotas.check_quotas(overrides, "STATEYARD_QUOTAS")
    return entries | overrides


STATEYARD_QUOTAS = _quotas()


STATEYARD_TARGETS_FILE = StartupFile(_CONFIG_DIR / "targets.json", _Shape("TARGETS"))


def _targets() -> dict[str, dict[str, Any]]:
    """Return the targets of AWS services: ``DATA/targets.json``; the environment wins."""
    overrides = environment.read_json_variable("STATEYARD_TARGETS", _Shape("TARGETS"))
    return STATEYARD_TARGETS_FILE.entries | local_options.read_targets() | overrides


STATEYARD_TARGETS = _targets()


def _permissions() -> dict[str, Any]:
    """Return the denied actions of roles: ``DATA/permissions.json``; the environment wins."""
    shape = _Shape("PERMISSIONS")
    overrides = environment.read_json_variable("STATEYARD_PERMISSIONS", shape)
    return _kept("permissions.json", shape) | overrides


STATEYARD_PERMISSIONS = _permissions()


def _mocks() -> FunctionsFile:
    """Return the mock configuration of Step Functions Local, read again when it changes.

    It is in the file or folder of its own variables, else in the data folder.
    """
    path_text = environment.read_text("SFN_MOCK_CONFIG")
    if path_text:
        environment.read_json_file(Path(path_text), _Shape("MOCKS"), "SFN_MOCK_CONFIG")
    path = Path(path_text) if path_text else _CONFIG_DIR / "MockConfigFile.json"
    return FunctionsFile(path, _Shape("MOCKS"), {})


STATEYARD_MOCKS: Mapping[str, Any] = _mocks()
STATEYARD_WAIT_TIME_SCALE = local_options.read_wait_time_scale()
# whether editors may put events of AWS services, marked, on a server that is for trying things out
STATEYARD_INJECT_AWS_EVENTS = environment.read_switch("STATEYARD_INJECT_AWS_EVENTS")
STATEYARD_EXPRESS_EVENTS = environment.read_switch("STATEYARD_EXPRESS_EVENTS")  # AWS sends none


def _mail(url: str) -> dict[str, Any]:
    """Parse ``smtp[s]://user:password@host:port/?from=address``; smtps: TLS, else STARTTLS."""
    name, expected = "STATEYARD_MAIL", "smtp://user:password@host:port/?from=address"
    parts = environment.parse_address(name, url, ("smtp", "smtps"), expected)
    if not parts.hostname:
        raise SettingError(name, "an address without a host", expected)
    return {
        "host": parts.hostname,
        "port": parts.port or (465 if parts.scheme == "smtps" else 587),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "secure": parts.scheme == "smtps",
        "sender": dict(parse_qsl(parts.query)).get("from", f"stateyard@{parts.hostname}"),
    }


STATEYARD_MAIL = environment.read_text("STATEYARD_MAIL")
if STATEYARD_MAIL:
    _SMTP = _mail(STATEYARD_MAIL)
    EMAIL_HOST, EMAIL_PORT = _SMTP["host"], _SMTP["port"]
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _SMTP["user"], _SMTP["password"]
    EMAIL_USE_SSL = _SMTP["secure"]
    EMAIL_USE_TLS = not EMAIL_USE_SSL and bool(EMAIL_HOST_USER)
    DEFAULT_FROM_EMAIL = _SMTP["sender"]
    EMAIL_TIMEOUT = 15
STATEYARD_FEATURES = environment.read_features("STATEYARD_FEATURES", FEATURES)


_PROXIES_OF_HEADER = "the proxies that STATEYARD_TRUSTED_USER_HEADER is believed from"
_FEATURE_OF_HEADER = "sign_in, as STATEYARD_TRUSTED_USER_HEADER needs it"


def _providers() -> dict[str, Any]:
    """Return the sign-in providers: ``DATA/oidc.json``; the environment wins."""
    shape = _Shape("OIDC")
    return _kept("oidc.json", shape) | environment.read_json_variable("STATEYARD_OIDC", shape)


STATEYARD_OIDC = _providers()
STATEYARD_TRUSTED_USER_HEADER = environment.read_header_name("STATEYARD_TRUSTED_USER_HEADER")
if STATEYARD_TRUSTED_USER_HEADER:
    if not STATEYARD_PROXIES:
        raise SettingError("STATEYARD_PROXIES", "nothing", _PROXIES_OF_HEADER)
    if "sign_in" not in STATEYARD_FEATURES:
        raise SettingError("STATEYARD_FEATURES", "no sign_in", _FEATURE_OF_HEADER)
    MIDDLEWARE.insert(
        MIDDLEWARE.index("console.web.core.middleware.SignInMiddleware"), oidc.PROXY_USER_MIDDLEWARE
    )
STATEYARD_PASSWORDS = environment.read_switch("STATEYARD_PASSWORDS", default=True)
STATEYARD_REQUIRE_SECOND_FACTOR = environment.read_switch("STATEYARD_REQUIRE_SECOND_FACTOR")
if STATEYARD_REQUIRE_SECOND_FACTOR and "account" not in STATEYARD_FEATURES:
    raise SettingError("STATEYARD_REQUIRE_SECOND_FACTOR", "1", "0 without the feature account")
_ALLAUTH = list(oidc.SECOND_FACTOR_APPS)  # also without the feature: its tables stay
MFA_ADAPTER = "console.features.account.mfa_adapter.MfaAdapter"
MFA_TOTP_TOLERANCE = 1  # the clocks of phones differ: also the period before and after
if STATEYARD_OIDC and "sign_in" in STATEYARD_FEATURES:
    # Only here: without a provider, a first start creates none of its tables.
    _ALLAUTH += oidc.APPS
    SOCIALACCOUNT_PROVIDERS = oidc.allauth_providers(STATEYARD_OIDC)
    SOCIALACCOUNT_ADAPTER = oidc.ADAPTER
    SOCIALACCOUNT_UID_MAX_LENGTH = 255  # of a subject, by the specification
INSTALLED_APPS += dict.fromkeys(_ALLAUTH)
MIDDLEWARE.insert(MIDDLEWARE.index("console.web.core.middleware.SignInMiddleware"), oidc.MIDDLEWARE)
STATEYARD_METRICS_TOKEN = environment.read_text("STATEYARD_METRICS_TOKEN")
STATEYARD_RETENTION_DAYS: float | None = None  # after which ended executions are removed
if environment.read_text("STATEYARD_RETENTION_DAYS"):
    STATEYARD_RETENTION_DAYS = environment.read_number(
        "STATEYARD_RETENTION_DAYS", 0, 0.001, 36_500, "days"
    )
STATEYARD_AUDIT_RETENTION_DAYS: float | None = None  # after which audit rows are removed
if environment.read_text("STATEYARD_AUDIT_RETENTION_DAYS"):
    STATEYARD_AUDIT_RETENTION_DAYS = environment.read_number(
        "STATEYARD_AUDIT_RETENTION_DAYS", 0, 1, 36_500, "days"
    )
STATEYARD_AUDIT_STREAM = environment.read_sink("STATEYARD_AUDIT_STREAM")
STATEYARD_AUDIT_STREAM_TOKEN = environment.read_text("STATEYARD_AUDIT_STREAM_TOKEN")
if STATEYARD_AUDIT_STREAM and "audit" not in STATEYARD_FEATURES:
    raise SettingError(
        "STATEYARD_FEATURES", "no audit", "audit, as STATEYARD_AUDIT_STREAM needs it"
    )
if STATEYARD_AUDIT_STREAM_TOKEN and not STATEYARD_AUDIT_STREAM.startswith("http"):
    raise SettingError(
        "STATEYARD_AUDIT_STREAM_TOKEN",
        "a token",
        "STATEYARD_AUDIT_STREAM=https://host/path with it",
    )
STATEYARD_BRANCHES = environment.read_whole_number("STATEYARD_BRANCHES", 20, 0, 1_000)
STATEYARD_BRANCH_GRACE_DAYS = environment.read_number(
    "STATEYARD_BRANCH_GRACE_DAYS", 0, 0, 365, "days"
)
STATEYARD_URL = environment.read_web_address("STATEYARD_URL")  # of the API; ``up`` knows its own

environment.refuse_unknown_variables()
