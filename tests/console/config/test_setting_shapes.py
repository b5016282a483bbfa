"""What a configuration file says and nobody reads is an error that names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from console.config import setting_shapes
from console.config.environment import SettingError, read_json_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import TypeAdapter

ROOT = Path(__file__).parents[3]
FILES: dict[str, TypeAdapter[Any]] = {
    "functions.json": setting_shapes.FUNCTIONS,
    "targets.json": setting_shapes.TARGETS,
    "permissions.json": setting_shapes.PERMISSIONS,
    "oidc.json": setting_shapes.OIDC,
    "MockConfigFile.json": setting_shapes.MOCKS,
}
ODD = "zzz"
KEYS = {"environment": "NAME"}
"""Field -> a name that its objects take; others take a number, as mocked responses do."""
TEXTS = {
    "handler": "module:function",
    "AuthorizationEndpoint": "https://example.com/token",
    "issuer": "https://login.example.com",
}


class Schema:
    """The JSON schema that pydantic has of the shape of a file."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self.root = adapter.json_schema()
        self.definitions = self.root.get("$defs", {})

    def objects(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the schema of each object."""
        yield "the file", self.root
        yield from self.definitions.items()

    def options(self, schema: Any) -> list[dict[str, Any]]:
        """Return the schemas that a value may have, references resolved."""
        if "$ref" in schema:
            return self.options(self.definitions[schema["$ref"].rpartition("/")[2]])
        parts = schema.get("anyOf") or schema.get("oneOf")
        return [option for part in parts for option in self.options(part)] if parts else [schema]

    def smallest(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return an object with the members that it needs."""
        properties = schema.get("properties", {})
        return {name: self.value(name, properties[name]) for name in schema.get("required", ())}

    def value(self, name: str, schema: Any) -> Any:
        """Return a value that a member takes."""
        option = self.options(schema)[0]
        if option.get("type") == "object":
            return self.smallest(option)
        return option.get("enum", [TEXTS.get(name, "x")])[0]

    def spoiled(self, schema: Any, field: str = "") -> Iterator[Any]:
        """Yield values with one member, somewhere in them, that nobody reads."""
        for option in self.options(schema):
            if option.get("type") == "array":
                yield from ([inner] for inner in self.spoiled(option["items"]))
            if option.get("type") != "object":
                continue
            begun = self.smallest(option)
            more = option.get("additionalProperties")
            yield {**begun, ODD: 7}
            if isinstance(more, dict):
                key = KEYS.get(field, "0")
                yield from ({**begun, key: inner} for inner in self.spoiled(more))
            for name, part in option.get("properties", {}).items():
                yield from ({**begun, name: inner} for inner in self.spoiled(part, name))


@pytest.mark.parametrize("name", FILES)
def test_no_object_takes_any_member(name: str) -> None:
    """Members are listed, or named by the user and then of a shape."""
    for title, schema in Schema(FILES[name]).objects():
        if schema.get("type") == "object":
            assert schema.get("additionalProperties") not in (None, True), title


@pytest.mark.parametrize("name", FILES)
def test_a_member_that_nobody_reads_is_named(tmp_path: Path, name: str) -> None:
    """At every depth of the schema, in each of its objects."""
    schema = Schema(FILES[name])
    documents = list(schema.spoiled(schema.root))
    assert len(documents) > 1
    path = tmp_path / name
    for document in documents:
        path.write_text(json.dumps(document), "utf-8")
        with pytest.raises(SettingError, match=ODD):
            read_json_file(path, FILES[name])


@pytest.mark.parametrize("name", FILES)
def test_every_member_is_read_somewhere(name: str) -> None:
    """A field of a shape is a word of the code that uses the file."""
    files = [path for path in ROOT.glob("console/**/*.py") if path.name != "setting_shapes.py"]
    text = "\n".join(path.read_text("utf-8") for path in files)
    for title, schema in Schema(FILES[name]).objects():
        for member in schema.get("properties", {}):
            assert f'"{member}"' in text, f"{title}: {member}"


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        ({"R": {"a": {"Return": 1}}}, "the number of an invocation"),
        ({"R": {"0-": {"Return": 1}}}, "the number of an invocation"),
        ({"R": {"0": {}}}, "one of Return and Throw"),
        ({"R": {"0": {"Return": 1, "Throw": {}}}}, "one of Return and Throw"),
        ({"R": {"0": {"Throw": {"Error": 1}}}}, "a text"),
        ({}, "not 'R'"),
    ],
)
def test_a_mocked_response_is_judged_before_it_is_used(
    tmp_path: Path, responses: Any, message: str
) -> None:
    """A test case without its response, keys that are no numbers, two answers in one."""
    machines = {"M": {"TestCases": {"ok": {"State": "R"}}}}
    path = tmp_path / "MockConfigFile.json"
    said = {"StateMachines": machines, "MockedResponses": responses}
    path.write_text(json.dumps(said), "utf-8")
    with pytest.raises(SettingError, match=message):
        read_json_file(path, setting_shapes.MOCKS)
