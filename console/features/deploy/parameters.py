"""Values of ``--param NAME=VALUE``, and the list of missing ones.

The modules that read templates ask for values that only AWS knows, and continue with a placeholder
for a missing one, so that one run lists all missing values. ``check`` raises that list before
anything is deployed.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from console.cli.documents import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def parse_parameters(words: list[str]) -> dict[str, str]:
    """Return name -> value; raise ``SourceError`` for an argument without "="."""
    for word in words:
        if "=" not in word or word.startswith("="):
            raise SourceError(f"--param: got {word!r}, wanted NAME=VALUE")
    return dict(word.split("=", 1) for word in words)


class LiteralNumber(float):
    """A number that keeps its spelling in texts: ``1.10`` may be a version."""

    written: str

    def __new__(cls, written: str) -> Self:
        """Return the number of a text, with its spelling."""
        number = super().__new__(cls, written)
        number.written = written
        return number


def text_of(value: Any) -> str:
    """Return a value as part of a text: ``true``, not ``True``.

    Raise ``ValueError`` for a list, an object or null, which no text can hold.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, LiteralNumber):
        return value.written
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    kinds = {list: "a list", dict: "an object", type(None): "null"}
    kind = kinds.get(type(value), f"a {type(value).__name__}")
    raise ValueError(f"got {kind} inside a text, wanted a text, a number, true or false")


def parse_value(text: str) -> Any:
    """Parse a value as JSON, else return the text."""
    try:
        return json.loads(text, parse_float=LiteralNumber, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def _no_number(name: str) -> None:
    raise ValueError(name)


@dataclass
class OptionalPart:
    """An optional part of a file. ``missing``: a line for each missing value or error."""

    missing: list[str] = field(default_factory=list)


class Parameters:
    """The values of ``--param``, and a line for each missing one.

    ``placeholders``: missing values become ``${Name}`` without an error. ``stand_ins``: the number
    of missing values so far; ``last_stand_in``: the placeholder that ``ask`` returned for the last.
    """

    def __init__(
        self, values: Mapping[str, str] | None = None, *, placeholders: bool = False
    ) -> None:
        self.values = values or {}
        self.placeholders = placeholders
        self._missing: dict[str, str] = {}  # name, or the line itself -> line
        self._read: set[str] = set()
        self.stand_ins = 0
        self.last_stand_in = ""

    def text(self, *names: str) -> str | None:
        """Return the unparsed value of the first name that has a value."""
        self._read.update(names)
        return next((self.values[name] for name in names if name in self.values), None)

    def value(self, *names: str) -> Any:
        """Return the parsed value of the first name that has a value; None without one."""
        text = self.text(*names)
        return None if text is None else parse_value(text)

    def ask(self, place: str, marker: str, *names: str, got: str = "no value") -> Any:
        """Return the ``--param`` value of the first of these names that is set.

        Without one, record an error (unless ``placeholders``) and return a placeholder. ``place``:
        the file and its part that needs the value; ``marker``: the expression or name in that part,
        such as ``${Table}``; ``got``: what the error says about the value.
        """
        if self.text(*names) is not None:
            return self.value(*names)
        self.stand_ins += 1
        if not self.placeholders:
            line = (
                f"{place}: {marker}: got {got}, wanted --param {_quote_for_shell(names[0])}=VALUE"
            )
            self._missing.setdefault(names[0], " ".join(line.split()))
        self.last_stand_in = marker if "{" in marker else f"${{{names[0]}}}"
        return self.last_stand_in

    def refuse(self, error: SourceError) -> None:
        """Record an error in a part of a file and continue."""
        self._missing.update((line, line) for line in str(error).splitlines())

    @contextmanager
    def collect(self, place: str) -> Iterator[None]:
        """Record the errors raised within, and continue after it."""
        try:
            yield
        except SourceError as error:
            self.refuse(error)
        except RecursionError:
            self.refuse(SourceError(f"{place}: got values that are nested too deep, wanted fewer"))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            error_text = " ".join(str(error).split())
            self.refuse(
                SourceError(f"{place}: got a value of another shape than wanted ({error_text})")
            )

    @contextmanager
    def attempt(self) -> Iterator[OptionalPart]:
        """Read an optional part: missing values in it are not reported."""
        before = dict(self._missing)
        attempt = OptionalPart()
        try:
            yield attempt
        except SourceError as error:
            attempt.missing.append(str(error))
        finally:
            attempt.missing += [line for key, line in self._missing.items() if key not in before]
            self._missing = before

    def unread(self) -> list[str]:
        """Return the names that no file has used."""
        return [name for name in self.values if name not in self._read]

    def check(self) -> None:
        """Raise ``SourceError`` with a line for each value that is missing or wrong."""
        if self.problems:
            raise SourceError("\n".join(self.problems))

    @property
    def problems(self) -> list[str]:
        """Return a line for each value that is missing or wrong."""
        return list(self._missing.values())


def _quote_for_shell(name: str) -> str:
    """Return a name quoted for a shell."""
    return (
        name if all(letter.isalnum() or letter in "-_.:/@%+," for letter in name) else f"'{name}'"
    )
