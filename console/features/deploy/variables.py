"""Evaluate the variables of the Serverless Framework: ``${self:custom.x, 'default'}``.

A variable is evaluated when its value is needed. A variable that only the environment of a function
uses is never evaluated, so it needs no value. Sources that cannot be read here (AWS, git,
JavaScript) take their values from ``--param``, named by address (``/a/b`` for ``${ssm:/a/b}``) or
by source and address (``ssm:/a/b``). A value without ``--param`` becomes a placeholder, so that one
run lists all missing values (``parameters``).
"""

from __future__ import annotations

import json
import os
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dotenv import dotenv_values

from console.cli.documents import (
    JSON_ENDS,
    MOST_CHARACTERS,
    YAML_ENDS,
    SourceError,
    is_confined,
    load_document,
    read_text,
)
from console.features.deploy.parameters import text_of
from console.features.deploy.placeholders import source_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from console.cli.account import Account
    from console.features.deploy.parameters import Parameters

_BEGIN = re.compile(r"(?<!\\)\$\{\s*([A-Za-z][\w-]*)(?=\(|:[^:\s])")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_LITERAL = re.compile(r"-?\d+(\.\d+)?|true|false|null")
_FILE = re.compile(r"file\((.*)\)(?::(.+))?")
_BOOLEAN = re.compile(r"strToBool\((.*)\)")
_SOURCE = re.compile(r"([A-Za-z][\w-]*)(\(.*\))?(?::(.*))?", re.DOTALL)
_SCRIPTS = (".js", ".cjs", ".mjs", ".ts", ".mts", ".cts")
_SOURCES = {
    *("self", "opt", "env", "param", "sls", "aws", "file", "strToBool", "ssm", "s3", "cf", "git"),
    *("terraform", "vault", "doppler", "output", "custom"),
}
"""Source names recognised inside ``{% %}``. There, any other ``${a:b}`` is a JSONata object."""
_MISSING: Any = object()
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class ServiceVariables:
    """The variables of one ``serverless.yml``.

    ``document``: the parsed file with its variables unresolved. A ``place`` is the path of a value
    in the file, for error messages: ``provider.environment.TABLE``.
    """

    def __init__(
        self, path: Path, document: dict[str, Any], account: Account, parameters: Parameters
    ) -> None:
        self._path, self._document, self._account = path, document, account
        self._parameters = parameters
        self._looking: list[str] = []
        self._filled: dict[str, Any] = {}
        self._files: dict[Path, Any] = {}
        self._characters = 0

    @cached_property
    def stage(self) -> str:
        """Return the stage: ``--param stage=...``, else ``provider.stage``, else ``dev``."""
        option = self._parameters.text("stage")
        declared = self._at(self._document, ["provider", "stage"]) if option is None else option
        return (
            "dev"
            if declared is _MISSING or declared is None
            else text_of(self.fill(declared, "provider"))
        )

    def fill(self, value: Any, place: str) -> Any:
        """Return a value with all variables replaced, recursively, including those in results."""
        if isinstance(value, dict):
            return {key: self.fill(part, f"{place}.{key}") for key, part in value.items()}
        if isinstance(value, list):
            return [self.fill(part, f"{place}[{number}]") for number, part in enumerate(value)]
        return self._text(value, place, deep=True) if isinstance(value, str) else value

    def shallow(self, value: Any, place: str) -> Any:
        """Resolve a text that is a variable; variables nested in a dict or list stay unresolved."""
        return self._text(value, place, deep=False) if isinstance(value, str) else value

    def section(self, *keys: str) -> Any:
        """Return the value at a path of keys in the file, None if it is missing."""
        part = self._at(self._document, list(keys))
        return None if part is _MISSING else part

    # -- texts -------------------------------------------------------------------------------------

    def _text(self, text: str, place: str, *, deep: bool) -> Any:
        pieces, end = [], 0
        for first, last in _variables(text):
            expression = text[first + 2 : last - 1]
            if (first, last) == (0, len(text)):
                value = self._value(expression, place, deep=deep)
                return self._parameter_value(expression, place) if value is _MISSING else value
            value = self._value(expression, place, deep=True)
            value = self._parameter_value(expression, place) if value is _MISSING else value
            try:
                pieces += [text[end:first], text_of(value)]
            except ValueError as error:
                raise self._error(place, expression, str(error)) from None
            self._characters += len(pieces[-1])
            if self._characters > MOST_CHARACTERS:
                message = f"got a text that grows, wanted at most {MOST_CHARACTERS} characters"
                raise self._error(place, expression, message)
            end = last
        return "".join([*pieces, text[end:]]) if pieces else text.replace("\\${", "${")

    def _value(self, expression: str, place: str, *, deep: bool) -> Any:
        """Return the first existing value of a comma-separated list, else ``_MISSING``."""
        for part in (text.strip() for text in _by_comma(expression)):
            quoted = _QUOTED.fullmatch(part)
            if quoted:
                return self._text(quoted[1] if quoted[2] is None else quoted[2], place, deep=deep)
            if _LITERAL.fullmatch(part):
                return json.loads(part)
            is_reference = next(iter(_variables(part)), None) == (0, len(part))
            if is_reference:
                value = self._value(part[2:-1], place, deep=deep)
            else:
                value = self._source(part, place, deep=deep)
            if value is not _MISSING and value is not None:
                return value
        return _MISSING

    def _source(self, part: str, place: str, *, deep: bool) -> Any:
        """Return the value of ``source:address``. The address may contain variables."""
        if any(True for _ in _variables(part)):
            before = self._parameters.stand_ins
            part = str(self._text(part, place, deep=True))
            if self._parameters.stand_ins > before:
                return self._parameters.last_stand_in
        key = f"{part} {deep}"
        if key in self._filled:
            return self._filled[key]
        if key in self._looking:
            raise self._error(place, part, "got variables in a circle, wanted values")
        self._looking.append(key)
        try:
            parameter = self._parameters.value(*source_names(part))
            before = self._parameters.stand_ins
            value = self._lookup(part, place) if parameter is None else parameter
            if self._parameters.stand_ins > before and (value is _MISSING or value is None):
                value = self._parameters.last_stand_in
            elif value is not _MISSING and parameter is None:
                value = self.fill(value, place) if deep else self.shallow(value, place)
        finally:
            self._looking.pop()
        self._filled[key] = value
        return value

    def _parameter_value(self, expression: str, place: str) -> Any:
        """Return the value of ``--param``, named by the first source, else a stand-in."""
        part = _by_comma(expression)[0].strip() if expression.strip() else expression
        while part.startswith("${"):
            part = _by_comma(part[2:-1])[0].strip()
        if any(True for _ in _variables(part)):
            part = str(self._text(part, place, deep=True))
        script = part.startswith("file(") and _file_of(part).endswith(_SCRIPTS)
        got = "JavaScript, which is not run here" if script else "no value"
        where = f"{self._path}: {place}"
        return self._parameters.ask(
            where, f"${{{expression.strip()}}}", *source_names(part), got=got
        )

    # -- sources -----------------------------------------------------------------------------------

    def _lookup(self, part: str, place: str) -> Any:
        boolean = _BOOLEAN.fullmatch(part)
        if boolean:
            return self._boolean(boolean[1], place)
        if part.startswith("file("):
            return self._of_file(part, place)
        source, _, address = part.partition(":")
        sources: dict[str, Callable[[str], Any]] = {
            "self": self._own,
            "param": self._parameter,
            "env": lambda name: self._environment.get(name, _MISSING),
            "sls": lambda name: self.stage if name == "stage" else _MISSING,
            "aws": lambda name: {
                "accountId": self._account.number,
                "region": self._account.region,
            }.get(name, _MISSING),
        }
        return sources[source](address) if source in sources else _MISSING

    def _own(self, address: str) -> Any:
        value = self._at(self._document, address.split(".") if address else [])
        if value is _MISSING and address == "provider.stage":
            return self.stage
        if value is _MISSING and address == "provider.region":
            return self._account.region
        return value

    def _parameter(self, name: str) -> Any:
        """Return a value of ``params``: for the stage, else from ``default``."""
        for stage in (self.stage, "default"):
            value = self._at(self._document, ["params", stage, name])
            if value is not _MISSING:
                return value
        return _MISSING

    @cached_property
    def _environment(self) -> dict[str, Any]:
        """Return the environment; ``useDotenv`` adds variables from ``.env.STAGE`` or ``.env``."""
        own = {} if is_confined() else dict(os.environ)
        if self._at(self._document, ["useDotenv"]) is not True:
            return own
        paths = [self._path.parent / name for name in (f".env.{self.stage}", ".env")]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            return own
        read_text(path)  # raises SourceError for an unreadable file, and notes it for --watch
        return {**dotenv_values(path, encoding="utf-8", interpolate=not is_confined()), **own}

    def _boolean(self, text: str, place: str) -> bool:
        quoted = _QUOTED.fullmatch(text.strip())
        word = (quoted[1] or quoted[2] or "") if quoted else text.strip()
        if not quoted and _SOURCE.fullmatch(word) and ":" in word:
            word = text_of(self._text(f"${{{word}}}", place, deep=True))
        if word.lower() not in _BOOLEANS:
            if self._parameters.stand_ins and "${" in word:
                return False  # a placeholder: its missing value is already listed
            raise self._error(place, f"strToBool({text})", f"got {word!r}, wanted true or false")
        return _BOOLEANS[word.lower()]

    def _of_file(self, part: str, place: str) -> Any:
        match = _FILE.fullmatch(part)
        if match is None:
            raise self._error(place, part, "got no name of a file, wanted file(NAME)")
        path = self._path.parent / match[1].strip()
        if not path.is_file() or path.name.endswith(_SCRIPTS):
            return _MISSING
        if path not in self._files:
            is_document = path.name.endswith((*JSON_ENDS, *YAML_ENDS))
            self._files[path] = load_document(path) if is_document else read_text(path)
        return self._at(self._files[path], match[2].split(".") if match[2] else [])

    def _at(self, document: Any, keys: list[str]) -> Any:
        """Return the value at a path of keys, resolving variables along it; else ``_MISSING``."""
        for number, key in enumerate(keys):
            value = self.shallow(document, ".".join(keys[:number]))
            if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                document = value[int(key)]
            elif isinstance(value, dict) and key in value:
                document = value[key]
            else:
                return _MISSING
        return self.shallow(document, ".".join(keys))

    def _error(self, place: str, expression: str, reason: str) -> SourceError:
        return SourceError(f"{self._path}: {place}: ${{{expression.strip()}}}: {reason}")


def _variables(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each outermost variable of a text."""
    jsonata = text.lstrip().startswith("{%")
    end = 0
    for match in _BEGIN.finditer(text):
        if match.start() < end or (jsonata and match[1] not in _SOURCES):
            continue
        close = _closing_index(text, match.start() + 2)
        if close is not None:
            end = close + 1
            yield match.start(), end


def _closing_index(text: str, start: int) -> int | None:
    """Return the index of the bracket that closes a variable; None if it is not closed."""
    depth, quote = 1, ""
    for index in range(start, len(text)):
        letter = text[index]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter if letter in text[index + 1 :] else ""
        elif letter == "{" and text[index - 1] == "$":
            depth += 1
        elif letter == "}":
            depth -= 1
            if not depth:
                return index
    return None


def _by_comma(expression: str) -> list[str]:
    """Split an expression at its commas, except commas inside quotes or brackets."""
    parts, depth, quote = [""], 0, ""
    for letter in expression:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "({":
            depth += 1
        elif letter in ")}":
            depth -= 1
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _file_of(part: str) -> str:
    match = _FILE.fullmatch(part)
    return match[1].strip() if match else ""
