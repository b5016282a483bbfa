"""Configure the server's log: its lines and their format.

Each event is one line on stderr: for people, or JSON with ``STATEYARD_LOG=json``. structlog's
renderers write both. The processors before them keep out what belongs to users: inputs, outputs,
causes, definitions, tokens, and the messages of their exceptions. Those are in the database, where
rights are checked. In lines for people, characters that steer a terminal or begin a line are
written as escapes; JSON escapes them by itself.
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
    """Set structlog up and return the configuration of Python's own logging.

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
            "httpx": {"level": "WARNING"},  # it logs whole addresses, whose query may be a secret
            "django.request": {"level": "ERROR"},  # the answer tells a client of its mistakes
            "django.security": {"level": "CRITICAL"},
            "psycopg": {"level": "ERROR"},  # the server itself writes one line of an outage
        },
    }


def request_id() -> str:
    """Return the id of the request that is being answered, "" if there is none."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def _shared_processors() -> list[Processor]:
    """Return what every event goes through, be it of this project or of a library."""
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
    """Cut a library's message after its first line: some show values of users below it."""
    event["event"] = str(event.get("event", "")).partition("\n")[0]
    return event


def _name_route(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put the route of a failed page in place of its path: that of a login link has a secret."""
    record = event.get("_record")
    request = getattr(record, "request", None)
    if request is not None:
        match = getattr(request, "resolver_match", None)
        event["event"] = "a page failed"
        event["method"] = getattr(request, "method", "")
        event["route"] = getattr(match, "route", "")
    return event


def _hide_payloads(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Replace values whose names are in ``SENSITIVE``."""
    for name in event:
        if name.lower() in SENSITIVE:
            event[name] = HIDDEN
    return event


def _exception_places(exc_info: ExcInfo) -> list[str]:
    """Return types and places of an exception and its causes, without messages and variables.

    An exception that was raised ``from None`` is followed, too: whoever reads the log wants it.
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
    """Return what writes ``MOMENT LEVEL WORDS NAME=VALUE...``, and an exception's places below."""

    def column(name: str, value_repr: Callable[[object], str], width: int = 0) -> Column:
        key_style = None if name else ""  # the column without a name is for all other values
        return Column(name, KeyValueColumnFormatter(key_style, "", "", value_repr, width))

    columns = [
        column("timestamp", str),
        column("level", str, len("critical")),
        column("event", lambda value: escaped(str(value))[:_MAX_CHARACTERS]),
        column("", _text_value),
    ]
    return [_indent_exception, ConsoleRenderer(columns=columns, sort_keys=False)]


def _indent_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put the places of an exception on lines of their own."""
    if "exception" in event:
        event["exception"] = "\n".join(f"    {escaped(line)}" for line in event["exception"])
    return event


def _text_value(value: object) -> str:
    text = _shortened(escaped(str(value)))
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text else text


def escaped(text: str) -> str:
    """Write out characters that are not printable: line ends, ESC, reversed writing."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def _json_renderers() -> list[Processor]:
    """Return the renderer of log lines: one JSON object in ASCII each."""
    return [_make_plain, JSONRenderer()]


def _make_plain(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {name: _json_value(value) for name, value in event.items()}


def _json_value(value: object) -> object:
    """Return a value that JSON has; of another one only its type, for its text may be a user's."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _shortened(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(item) for item in value]
    return f"<{type(value).__name__}>"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
