"""Configure the server's log: one line per event on stderr, for people or as JSON.

``STATEYARD_LOG=json`` selects JSON. structlog renders both. Processors remove user data: inputs,
outputs, causes, definitions, tokens, and messages of exceptions caused by them; these are in the
database, where rights are checked. In lines for people, control characters are escaped.
"""

from __future__ import annotations

import json
import traceback
from typing import TYPE_CHECKING, Any

import structlog
from structlog.contextvars import merge_contextvars
from structlog.dev import Column, ConsoleRenderer, KeyValueColumnFormatter
from structlog.processors import ExceptionRenderer, JSONRenderer

from console.config.environment import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

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
# Their messages are about the database, the machine or this project, and hold nothing of users.
_WITH_MESSAGE = ("OperationalError", "InterfaceError", "ModuleNotFoundError", "NewerFormat")
_MAX_CHARACTERS = 2_000  # of one value
_MAX_FRAMES = 30  # of one exception, the innermost ones
_OWN_LOGGER = "console"


def configure(style: str) -> dict[str, Any]:
    """Set structlog up, and return the configuration for Python's ``logging``.

    ``style``: one of ``STYLES``; raise ``SettingError`` for another one.
    """
    if style not in STYLES:
        raise SettingError("STATEYARD_LOG", repr(style), f"one of: {', '.join(STYLES)}")
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    renderers = _json_renderers() if style == "json" else _text_renderers()
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": [_keep_first_line, _name_route, *_shared_processors()],
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            _OWN_LOGGER: {"level": "INFO"},
            "django": {"handlers": [], "level": "WARNING"},  # none by mail
            "django.request": {"level": "ERROR"},  # the answer tells a client of its mistakes
            "django.security": {"level": "CRITICAL"},
            "psycopg": {"level": "ERROR"},  # the server itself writes one line of an outage
        },
    }


def request_id() -> str:
    """Return the id of the current request, "" outside of requests."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def _shared_processors() -> list[Processor]:
    """Return the processors of all events, also those of libraries."""
    return [
        merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _hide_payloads,
        ExceptionRenderer(_exception_places),
    ]


# -- what is logged --------------------------------------------------------------------------------


def _keep_first_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Keep only the first line of a library's message: further lines may have user data."""
    event["event"] = str(event.get("event", "")).partition("\n")[0]
    return event


def _name_route(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Replace the path of a failed page by its route: the path of a login link has a secret."""
    record = event.get("_record")
    request = getattr(record, "request", None)
    if request is not None:
        match = getattr(request, "resolver_match", None)
        event["event"] = "a page failed"
        event["method"] = getattr(request, "method", "")
        event["route"] = getattr(match, "route", "")
    return event


def _hide_payloads(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Replace the values of keys in ``SENSITIVE``."""
    for name in event:
        if name.lower() in SENSITIVE:
            event[name] = HIDDEN
    return event


def _exception_places(exc_info: ExcInfo) -> list[str]:
    """Return types and places of an exception and its causes, without messages and variables.

    The context of an exception raised ``from None`` is included.
    """
    lines: list[str] = []
    seen: set[int] = set()
    error: BaseException | None = exc_info[1]
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        lines += [_exception_name(error), *_frames(error.__traceback__)]
        error = error.__cause__ or error.__context__
    return lines


def _exception_name(error: BaseException) -> str:
    name = type(error).__name__
    return f"{name}: {str(error).strip()}" if name in _WITH_MESSAGE else name


def _frames(trace: TracebackType | None) -> Iterator[str]:
    for frame in traceback.extract_tb(trace)[-_MAX_FRAMES:]:
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"


# -- how it is written -----------------------------------------------------------------------------


def _text_renderers() -> list[Processor]:
    """Return the renderers of lines ``MOMENT LEVEL WORDS NAME=VALUE...`` and of tracebacks."""

    def column(name: str, value_repr: Callable[[object], str], width: int = 0) -> Column:
        key_style = None if name else ""  # the column without a name is for all other values
        return Column(name, KeyValueColumnFormatter(key_style, "", "", value_repr, width))

    columns = [
        column("timestamp", str),
        column("level", str, len("critical")),
        column("event", lambda value: escape_unprintable(str(value))[:_MAX_CHARACTERS]),
        column("", _text_value),
    ]
    return [_indent_exception, ConsoleRenderer(columns=columns, sort_keys=False)]


def _indent_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put the places of an exception on lines of their own."""
    if "exception" in event:
        event["exception"] = "\n".join(
            f"    {escape_unprintable(line)}" for line in event["exception"]
        )
    return event


def _text_value(value: object) -> str:
    text = _shortened(escape_unprintable(str(value)))
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text else text


def escape_unprintable(text: str) -> str:
    """Escape unprintable characters: line ends, ESC, right-to-left marks."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def _json_renderers() -> list[Processor]:
    """Return the renderers of lines with one JSON object in ASCII."""
    return [_make_plain, JSONRenderer()]


def _make_plain(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {name: _json_value(value) for name, value in event.items()}


def _json_value(value: object) -> object:
    """Return a JSON value unchanged; of others only the type, since their text may be user data."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _shortened(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(item) for item in value]
    return f"<{type(value).__name__}>"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
