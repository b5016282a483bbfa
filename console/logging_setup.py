"""What does the server write about itself, and in which form?

One line an event on stderr: for people, or as JSON with ``STEPYARD_LOG=json``. What belongs to
users - inputs, outputs, causes, definitions, tokens, the messages of their exceptions - is in the
database, where rights are checked, and never here. Characters that steer a terminal or begin a
line are written as escapes.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import TYPE_CHECKING, Any

import structlog
from structlog.contextvars import merge_contextvars

from console.environment import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from structlog.typing import EventDict, Processor, WrappedLogger

STYLES = ("text", "json")
HIDDEN = "(not logged)"
# Names of what is never logged; the first ones are what botocore's model of the service marks.
SENSITIVE = frozenset(
    {
        "input",
        "output",
        "cause",
        "error_message",
        "definition",
        "details",
        "result",
        "token",
        "tasktoken",
        "task_token",
        "variables",
        "parameters",
        "payload",
        "body",
        "headers",
        "authorization",
        "cookie",
        "password",
        "secret",
        "link",
    }
)
# Whose messages tell of the database, of the machine or of us, and of nothing that users sent.
_SPEAKING = ("OperationalError", "InterfaceError", "ModuleNotFoundError", "NewerFormat")
_MOST = 2_000  # characters of one value
_FRAMES = 30
_OURS = "console"


def configure(style: str) -> dict[str, Any]:
    """Set structlog up and return the configuration of Python's own logging."""
    if style not in STYLES:
        raise SettingError("STEPYARD_LOG", repr(style), f"one of: {', '.join(STYLES)}")
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    last: Processor = _as_json if style == "json" else _as_text
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": [_of_others, _of_a_request, *_shared()],
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            _OURS: {"level": "INFO"},
            "django": {"handlers": [], "level": "WARNING"},  # none by mail
            "httpx": {"level": "WARNING"},  # it logs whole addresses, whose query may be a secret
            "django.request": {"level": "ERROR"},  # what clients got wrong they are told
            "django.security": {"level": "CRITICAL"},
            "psycopg": {"level": "ERROR"},  # of an outage the server itself writes one line
        },
    }


def request_id() -> str:
    """Return the id of the request that is being answered, "" if there is none."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def _shared() -> list[Processor]:
    return [
        merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_what_belongs_to_users,
        _with_places,
    ]


# -- what is told ----------------------------------------------------------------------------------


def _of_others(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Keep the first line of what libraries say: below it some show the values they failed at."""
    event["event"] = str(event.get("event", "")).partition("\n")[0]
    return event


def _of_a_request(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Name the route in place of the path: in that of a login link there is a secret."""
    record = event.get("_record")
    request = getattr(record, "request", None)
    if request is not None:
        match = getattr(request, "resolver_match", None)
        event["event"] = "a page failed"
        event["method"] = getattr(request, "method", "")
        event["route"] = getattr(match, "route", "")
    return event


def _without_what_belongs_to_users(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for name in event:
        if name.lower() in SENSITIVE:
            event[name] = HIDDEN
    return event


def _with_places(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put the types and places of an exception where it was, without messages and variables."""
    given = event.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else None
    if isinstance(given, tuple):
        error = given[1]
    elif given and error is None:
        error = sys.exc_info()[1]
    if error is not None:
        event["exception"] = list(_places(error))
    return event


def _places(error: BaseException) -> Iterator[str]:
    """Yield what was raised and where, the cause after what it caused."""
    seen: set[int] = set()
    next_one: BaseException | None = error
    while next_one is not None and id(next_one) not in seen:
        seen.add(id(next_one))
        yield _named(next_one)
        yield from _frames(next_one.__traceback__)
        next_one = next_one.__cause__ or next_one.__context__


def _named(error: BaseException) -> str:
    name = type(error).__name__
    return f"{name}: {str(error).strip()}" if name in _SPEAKING else name


def _frames(trace: TracebackType | None) -> Iterator[str]:
    frames = traceback.extract_tb(trace)
    for frame in frames[-_FRAMES:]:
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"


# -- how it is written -----------------------------------------------------------------------------


def escaped(text: str) -> str:
    """Write out what is no printable character: line ends, ESC, reversed writing."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def _shown(value: object) -> str:
    text = escaped(str(value))
    text = text if len(text) <= _MOST else f"{text[:_MOST]}…"
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text else text


def _as_text(_: WrappedLogger, __: str, event: EventDict) -> str:
    """Return a line for people, with the places of an exception below it."""
    rest: dict[str, Any] = dict(event)
    moment, level = rest.pop("timestamp", ""), rest.pop("level", "")
    words, places = escaped(str(rest.pop("event", "")))[:_MOST], rest.pop("exception", [])
    pairs = "".join(f" {name}={_shown(value)}" for name, value in rest.items())
    below = "".join(f"\n    {escaped(one)}" for one in places)
    return f"{moment} {level:<8} {words}{pairs}{below}"


def _as_json(_: WrappedLogger, __: str, event: EventDict) -> str:
    """Return one line of ASCII."""
    return json.dumps({name: _value(value) for name, value in event.items()})


def _value(value: object) -> object:
    """Return what JSON can hold of a value; of what it cannot, the type."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= _MOST else f"{value[:_MOST]}…"
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(one) for one in value]
    return f"<{type(value).__name__}>"
