"""Read a JSON object of a definition: typed access to its fields, and reports of problems.

A ``DefinitionNode`` is the object with its JSON pointer, such as ``/States/Pay/Retry[0]``. Its
methods return a field's value or compiled expression, and report an invalid one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.data.expression import NOTHING, Json, Literal
from engine.data.intrinsics import compile_intrinsic
from engine.data.jsonata import compile_jsonata, is_jsonata, jsonata_problem
from engine.data.paths import PathSyntaxError, compile_path, is_reference_path
from engine.data.templates import (
    CollidingKeysError,
    TemplateSyntaxError,
    compile_jsonata_template,
    compile_template,
)
from engine.language.diagnostics import DiagnosticCode
from engine.language.model import QueryLanguage

if TYPE_CHECKING:
    from engine.data.expression import Expression
    from engine.language.diagnostics import Problems

MAX_SECONDS = 99_999_999


@dataclass(frozen=True, slots=True)
class DefinitionNode:
    """A JSON object in a definition, with its pointer and its query language.

    ``location``: the prefix of its fields in causes of failed JSONata expressions, such as
    ``Choices[0]/``; "" for a state.
    """

    value: dict[str, Json]
    pointer: str
    language: QueryLanguage
    problems: Problems
    location: str = ""

    def at(self, name: str) -> str:
        """Return the JSON pointer of a field."""
        return f"{self.pointer}/{name}"

    def error(self, name: str, message: str) -> None:
        """Report a problem of a field ("": of the object itself)."""
        self.problems.error(self.at(name) if name else self.pointer or "/", message)

    def newer_error(self, name: str, message: str) -> None:
        """Report a problem that earlier releases accepted; stored definitions may have it."""
        self.problems.newer_error(self.at(name) if name else self.pointer or "/", message)

    def has(self, name: str) -> bool:
        """Return whether the field is there."""
        return name in self.value

    def get(self, name: str) -> Json:
        """Return the field's value, None if it is missing."""
        return self.value.get(name)

    @property
    def jsonata(self) -> bool:
        """Return whether this part is in JSONata."""
        return self.language is QueryLanguage.JSONATA

    # -- plain values ------------------------------------------------------------------------------

    def text(self, name: str) -> str | None:
        """Return a string field; report any other value."""
        value = self.get(name)
        if isinstance(value, str):
            return value
        if name in self.value:
            self.error(name, "Expected value of type String")
        return None

    def number(self, name: str, least: int, most: int = MAX_SECONDS) -> int | None:
        """Return an integer field within bounds; report any other value."""
        value = self.get(name)
        if name not in self.value:
            return None
        whole = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, float) and value.is_integer():
            value, whole = int(value), True
        if not whole:
            self.error(name, "Expected value of type Integer")
        elif value < least:
            self.error(name, f"Minimum value is {least}")
        elif value > most:
            self.error(name, f"Maximum value is {most}")
        else:
            return int(value)
        return None

    def one_of(self, name: str, values: tuple[str, ...]) -> str | None:
        """Return a field with one of these values; report any other value."""
        value = self.text(name)
        if value is not None and value not in values:
            message = f"Value should be one of the following: [{', '.join(values)}]"
            self.error(name, message)
            return None
        return value

    def objects(self, name: str) -> list[DefinitionNode]:
        """Return the objects of an array field as nodes; report any other value."""
        value = self.get(name)
        if name not in self.value:
            return []
        if not isinstance(value, list):
            self.error(name, "Expected value of type Array")
            return []
        nodes = []
        for index, entry in enumerate(value):
            pointer = f"{self.at(name)}[{index}]"
            if isinstance(entry, dict):
                location = f"{self.location}{name}[{index}]/"
                nodes.append(DefinitionNode(entry, pointer, self.language, self.problems, location))
            else:
                self.problems.error(pointer, "Expected value of type Object")
        return nodes

    def child(self, name: str) -> DefinitionNode | None:
        """Return an object field as a node, None if it is missing; report any other value."""
        value = self.get(name)
        if isinstance(value, dict):
            location = f"{self.location}{name}/"
            return DefinitionNode(value, self.at(name), self.language, self.problems, location)
        if name in self.value:
            self.error(name, "Expected value of type Object")
        return None

    # -- expressions -------------------------------------------------------------------------------

    def reference(self, name: str) -> Expression | None:
        """Return a Reference Path field (into the input or a variable), None if it is missing.

        The path selects one value at most, and does not read the context object.
        """
        value = self.get(name)
        is_path = isinstance(value, str) and value.startswith("$")
        if is_path and (not is_reference_path(str(value)) or str(value).startswith("$$")):
            self.newer_error(name, "Value is not a Reference Path")
        return self.path(name)

    def path(self, name: str) -> Expression | None:
        """Return a path field, None if it is missing; report any other value.

        ASL: a null InputPath or OutputPath yields an empty object.
        """
        value = self.get(name)
        if name not in self.value:
            return None
        if value is None and name in ("InputPath", "OutputPath"):
            return NOTHING
        if not isinstance(value, str):
            self.error(name, "Expected value of type String")
            return None
        try:
            io = name in ("InputPath", "OutputPath")
            return compile_path(value, field="" if io else name)
        except PathSyntaxError:
            self.error(name, "Value must be a valid JSONPath.")
            return None

    def path_or_call(self, name: str, functions: tuple[str, ...]) -> Expression | None:
        """Return a field with a path or a call of one of these intrinsic functions."""
        value = self.get(name)
        if name not in self.value:
            return None
        try:
            if isinstance(value, str) and value.startswith("$"):
                return compile_path(value, field=name)
            if isinstance(value, str) and value.partition("(")[0].strip() in functions:
                return compile_intrinsic(value, field=name)
        except PathSyntaxError:
            pass
        message = f"The value for the field '{name}' must be a valid JSONPath or a valid intrinsic"
        self.error(name, f"{message} function call")
        return None

    def template(self, name: str) -> Expression | None:
        """Return a payload template field in the node's language."""
        if name not in self.value:
            return None
        value = self.get(name)
        try:
            if self.jsonata:
                return self.jsonata_template(name, field=name)
            _warn_of_bare_paths(self, name, value)
            return compile_template(value, field=name)
        except CollidingKeysError as error:
            self.problems.error(self.at(name) + error.pointer, str(error))
            return None
        except TemplateSyntaxError as error:
            inside = error.pointer.rpartition("/")[0]
            self.problems.error(
                self.at(name) + inside,
                f"The value for the field '{error.key}' must be a valid JSONPath or a valid "
                "intrinsic function call",
            )
            return None

    def jsonata_template(self, name: str, *, field: str) -> Expression | None:
        """Return a field with JSON and expressions; ``field``: its name in causes."""
        try:
            return compile_jsonata_template(self.get(name), field=f"{self.location}{field}")
        except TemplateSyntaxError as error:
            self.problems.jsonata_error(self.at(name) + error.pointer, error.reason, str(error))
            return None

    def scalar(self, name: str, least: int, most: int = MAX_SECONDS) -> Expression | None:
        """Return a number field; in JSONata it may be an expression."""
        if name not in self.value:
            return None
        if self.jsonata and isinstance(self.get(name), str):
            return self.expression(name)
        number = self.number(name, least, most)
        return None if number is None else Literal(number)

    def expression(self, name: str) -> Expression | None:
        """Return a JSONata field: a text between ``{%`` and ``%}``."""
        value = self.get(name)
        if not is_jsonata(value):
            self.error(name, jsonata_problem(value))
            return None
        try:
            return compile_jsonata(value, field=f"{self.location}{name}")
        except PathSyntaxError as error:
            self.problems.jsonata_error(self.at(name), error, str(error))
            return None


def _warn_of_bare_paths(node: DefinitionNode, name: str, value: Json) -> None:
    """Warn of values such as ``$.id`` under keys that do not end in ``.$``.

    ``{"id": "$.id"}`` is legal, but it passes the text "$.id" on: the most frequent mistake in
    payload templates.
    """
    stack: list[tuple[str, Any]] = [(node.at(name), value)]
    while stack:
        pointer, part = stack.pop()
        if isinstance(part, list):
            stack.extend((f"{pointer}[{index}]", inner) for index, inner in enumerate(part))
        if not isinstance(part, dict):
            continue
        for key, inner in part.items():
            place = f"{pointer}/{key}"
            stack.append((place, inner))
            if isinstance(inner, str) and inner.startswith("$.") and not key.endswith(".$"):
                message = (
                    f"The value looks like a JSONPath; the field name '{key}' does not end in '.$'"
                )
                node.problems.warning(place, message, DiagnosticCode.NO_DOLLAR)
