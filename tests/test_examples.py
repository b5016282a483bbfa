"""The examples on the pages of the documentation are valid, and those that run alone are run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from console.config import quotas, setting_shapes

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language on a page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def objects(page: str) -> list[Any]:
    """Return the JSON examples on a page of ``docs/``."""
    return [json.loads(block) for block in blocks(ROOT / "docs" / page, "json")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_json_examples_are_json(page: Path) -> None:
    """Each block can be copied as it is."""
    for block in blocks(page, "json"):
        json.loads(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_examples_compile(page: Path) -> None:
    """None has a syntax error."""
    for block in blocks(page, "python"):
        compile(block, str(page), "exec")


def test_the_examples_of_functions_are_accepted() -> None:
    """The server takes each of them as its ``functions.json``."""
    examples = objects("how-to/functions.md")
    assert len(examples) >= 2
    for example in examples:
        setting_shapes.FUNCTIONS.validate_python(example)


def test_the_examples_of_targets_are_accepted() -> None:
    """The server takes each of them as its ``targets.json``."""
    examples = [*objects("how-to/aws-targets.md"), *objects("reference/integrations.md")]
    assert len(examples) >= 5
    for example in examples:
        shape = setting_shapes.PERMISSIONS if "deny" in example else setting_shapes.TARGETS
        shape.validate_python(example)


def test_the_examples_of_quotas_are_accepted() -> None:
    """The server takes each of them as its ``quotas.json``."""
    examples = objects("reference/settings.md")
    assert len(examples) >= 1
    for example in examples:
        quotas.check_quotas(example, "an example")


def test_the_examples_of_the_engine_alone_run() -> None:
    """The page of CI has three whole examples; the others lack the definition."""
    page = blocks(ROOT / "docs/how-to/ci.md", "python")
    whole, path, halted, faulty, mocked = [block for block in page if "engine.run" in block]
    (short,) = [block for block in blocks(ROOT / "README.md", "python") if "engine.run" in block]
    names: dict[str, Any] = {}
    exec(whole, names)  # noqa: S102 - our own documentation
    assert names["result"].status == "SUCCEEDED"
    del names["result"]
    exec(short, names)  # noqa: S102 - our own documentation
    assert names["result"].output == {"n": 2}
    exec(path, names)  # noqa: S102 - our own documentation
    assert names["result"].path
    exec(halted, {})  # noqa: S102 - our own documentation
    exec(faulty, {})  # noqa: S102 - our own documentation
    exec(mocked, {})  # noqa: S102 - our own documentation
