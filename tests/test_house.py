"""The rules of the house: packages in one order, one word for one idea, closed sets as types.

The rules hold for ``engine`` and ``console``. ``python -m tests.architecture_report`` prints the
packages, their order, sizes, and what breaks a rule.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from console.statuses import ExecutionStatus
from tests.architecture import (
    classes,
    first_level,
    functions,
    import_cycles,
    imports_of,
    layer_of,
    literals,
    package_cycles,
    survey,
    upward_imports,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.architecture import ModuleFound

ENGINE_ORDER: tuple[tuple[str, ...], ...] = (
    # Each line may import from itself and from those above; the longest name decides.
    ("engine.errors", "engine.json_errors", "engine.jsontext", "engine.execution_status"),
    ("engine.data",),
    ("engine.language",),
    ("engine.history.event_types",),
    ("engine.runtime.events", "engine.runtime.messages", "engine.runtime.tokens"),
    ("engine.runtime.payload", "engine.runtime.commands", "engine.runtime.states.numbers"),
    ("engine.runtime.breakpoints",),
    ("engine.runtime.faults",),
    ("engine.runtime.run",),
    ("engine.runtime.variables",),
    ("engine.runtime.turn",),
    ("engine.runtime.context",),
    ("engine.runtime.halts", "engine.runtime.fault_strikes"),
    ("engine.runtime.flow",),
    ("engine.runtime.recovery",),
    ("engine.runtime.groups",),
    ("engine.runtime.states",),
    ("engine.runtime.redrive",),
    ("engine.runtime.states_ahead",),
    ("engine.runtime.release",),
    ("engine.runtime.halted_lines",),
    ("engine.runtime",),
    ("engine.graph",),
    ("engine.history",),
    ("engine.differences",),
    ("engine.limits_ahead",),
    ("engine.replay",),
    ("engine.coverage",),
    ("engine",),
)
CONSOLE_ORDER: tuple[tuple[str, ...], ...] = (
    # Packages, the lowest first: each imports from its own line and from those above.
    ("engine.errors", "engine.jsontext", "engine.json_errors", "engine.execution_status"),
    ("engine.data", "engine.language", "engine.graph", "engine.history", "engine.runtime"),
    ("engine.differences", "engine.limits_ahead", "engine.replay", "engine.coverage"),
    ("engine",),
    ("console", "console.features", "console.errors", "console.arns", "console.statuses"),
    ("console.models",),
    ("console.db",),
    ("console.samples", "console.recordings"),
    ("console.config",),
    ("console.feature", "console.access", "console.masking", "console.events", "console.functions"),
    ("console.execution_rights", "console.own_api"),
    ("console.integrations", "console.store"),
    ("console.own_client",),
    ("console.worker",),
    ("console.server", "console.cli", "console.command_line", "console.testing"),
    ("console.awsapi", "console.web"),
    ("console.management",),
    ("console.features.data_flow",),
    ("console.features.deploy", "console.features.insights", "console.features.failures"),
    ("console.features.versions",),
    ("console.features.targets",),
    ("console.features.metrics", "console.features.editor"),
    ("console.features.notifications",),
    ("console.features.replay",),
    ("console.features.tasks",),
    *((f"console.features.{name}",) for name in ("alarms", "approvals", "bulk", "compare")),
    *((f"console.features.{name}",) for name in ("doctor", "logs", "palette", "test_state")),
    ("console.features.hot_states", "console.features.named_inputs", "console.features.summary"),
    ("console.features.resilience", "console.features.roles", "console.features.coverage"),
    ("console.features.exports", "console.features.map_runs"),
    ("console.features.review",),
    ("console.features.service_jobs",),
    ("console.features.imports", "console.features.reproduce", "console.features.load"),
    ("console.features.project_settings",),
    *((f"console.features.{name}",) for name in ("projects", "branches", "sign_in", "access_keys")),
    *((f"console.features.{name}",) for name in ("account", "audit", "pause")),
    ("console.features.breakpoints", "console.features.faults", "console.features.next_starts"),
    ("console.features.operations", "console.features.saved_views"),
    ("console.features.members",),
    (
        "console.features.project_targets",
        "console.features.timeline",
        "console.features.execution_tree",
    ),
    ("console.urls", "console.asgi", "console.apps"),
)
_MOST_PACKAGES, _MOST_MODULES, _MOST_UPWARD = 35, 13, 1
_TEMPLATES = Path(__file__).parents[1] / "templates"
_TEMPLATE_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_VAGUE = {"one", "found", "here", "what", "told"}
_COMMANDS_OF_FEATURES = tuple(f"console.features.{name}" for name in ("deploy", "doctor", "roles"))
# An attribute, a filter and the name of a tag's argument are no variables.
_VAGUE_VARIABLE = re.compile(rf"(?<![\w.|-])({'|'.join(sorted(_VAGUE))})(?![\w=-])")
RESERVED = {
    "Machine": "engine.language.model",
    "Run": "engine.runtime.run",
    "Frame": "engine.runtime.run",
    "Message": "engine.runtime.messages",
    "Event": "engine.runtime.events",
    "Command": "engine.runtime.commands",
    "Step": "engine.runtime.run",
    "Moment": "engine.runtime.run",
}
"""The eight words that the README teaches, and where each is defined."""
SAME_NAME = {
    "ExecutionStatus": "one idea in two layers: a run may be NEW, a row may be imported unfinished",
    "Command": "Django finds the class of a management command by this name",
    "TaskTimedOut": "the engine's message, and AWS's error with the same name",
}
"""Names of classes that may stand more than once, and why."""
SHORT_NAME = {
    "engine.runtime.memory.run": "the documented entry point of unit tests: engine.run(...)",
    "console.samples.functions.add": "the sample function Add, as definitions name it",
}
"""Functions that may have a short name, and why: at most ten."""
_LETTERS = 4
_MAX_FUNCTION, _MAX_FILE = 60, 700

_PIECES = (
    "Execution|State|Task|LambdaFunction|Activity|Parallel|Map|MapIteration|MapRun|Evaluation|"
    "(?:State)?(?:Entered|Exited|Started|Succeeded|Failed|Aborted)|Scheduled|Submitted|TimedOut|"
    "Redriven|(?:Schedule|Start|Submit)Failed"
)
_PIECE_TEST = re.compile(
    rf"""\.(?:startswith|endswith|removeprefix|removesuffix)\(\s*\(?\s*["'](?:{_PIECES})["']"""
    rf"""|["'](?:{_PIECES})["']\s+(?:not\s+)?in\s+(?:\w+\.)*(?:kind|type|name|event_type)\b"""
)
_QUESTION = re.compile(r"\?(?:\s|$)")
_STATUSES = {"RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED", "PENDING_REDRIVE"}
_CLOSED_SETS = {
    "engine/execution_status.py",
    "engine/history/visits.py",
    "engine/language/diagnostics.py",
    "engine/runtime/run.py",
    "engine/runtime/trial.py",
}


@cache
def violations() -> dict[str, frozenset[str]]:
    """Return rule -> the names and places that break it."""
    broken = {
        "cycles": (" ".join(circle) for circle in import_cycles()),
        "same name": _repeated_class_names(),
        "reserved words": _reserved_elsewhere(),
        "short functions": (
            f"{function.module}.{function.name}"
            for function in functions()
            if function.top_level and len(function.name.strip("_")) < _LETTERS
        ),
        "pieces of event types": _places(lambda module: _PIECE_TEST.search(module.text)),
        "asking docstrings": _places(
            lambda module: (
                module.name.startswith("engine") and _QUESTION.search(_headline(module.tree))
            )
        ),
        "long functions": (
            f"{function.module}.{function.name}"
            for function in functions()
            if function.lines > _MAX_FUNCTION
        ),
        "long files": _places(lambda module: module.text.count("\n") > _MAX_FILE),
    }
    return {rule: frozenset(places) for rule, places in broken.items()}


def _places(breaks: Callable[[ModuleFound], object]) -> Iterator[str]:
    return (module.place for module in survey().values() if breaks(module))


def _headline(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").split("\n")[0]


def _repeated_class_names() -> Iterator[str]:
    return (
        name for name, modules in classes().items() if len(modules) > 1 and name not in SAME_NAME
    )


def _reserved_elsewhere() -> Iterator[str]:
    for name, home in RESERVED.items():
        for module in classes().get(name, ()):
            if module != home and ".management.commands." not in module:
                yield f"{module}.{name}"


def _new(rule: str) -> frozenset[str]:
    """Return what breaks a rule without a reason in the tables above."""
    return violations()[rule] - SHORT_NAME.keys()


# -- packages --------------------------------------------------------------------------------------


def test_packages_of_the_engine_import_downwards() -> None:
    """A module imports from its own package and from the packages below, also for type checks."""
    for module in survey():
        if not module.startswith("engine"):
            continue
        own = layer_of(module, ENGINE_ORDER)
        assert own is not None, module
        above = [name for name in imports_of(module) if (layer_of(name, ENGINE_ORDER) or 0) > own]
        assert not above, f"{module} imports {above}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Two modules that import each other are one module, cut in two."""
    assert not _new("cycles")


# -- words -----------------------------------------------------------------------------------------


def test_no_packages_import_each_other_in_a_circle() -> None:
    """Also where no two modules do: a package can be read, and left out, by itself."""
    assert package_cycles() == []


def test_packages_import_downwards() -> None:
    """``CONSOLE_ORDER`` has every package; at most one import points up."""
    upward = upward_imports(CONSOLE_ORDER)
    assert len(upward) <= _MOST_UPWARD, upward


def test_the_first_level_fits_on_a_screen() -> None:
    """So many folders in engine and console, so many modules in console."""
    folders, root_modules = first_level()
    assert len(folders) <= _MOST_PACKAGES, folders
    assert len(root_modules) <= _MOST_MODULES, root_modules


def test_each_class_name_stands_once() -> None:
    """One word means one thing; a name that stands twice needs a reason in ``SAME_NAME``."""
    assert not _new("same name")


def test_the_eight_words_are_the_engines() -> None:
    """No other class is called Machine, Run, Frame, Message, Event, Command, Step or Moment."""
    assert not _new("reserved words")


def test_functions_have_names_that_can_be_read() -> None:
    """A top-level function has a name of four letters or more."""
    assert not _new("short functions")
    assert len(SHORT_NAME) <= 10


def test_templates_call_things_by_their_nouns() -> None:
    """No variable of a template is called ``one``, ``found``, ``here``, ``what`` or ``told``."""
    vague = [
        f"{path.relative_to(_TEMPLATES)}: {tag}"
        for path in sorted(_TEMPLATES.rglob("*.*"))
        for tag in _TEMPLATE_TAG.findall(path.read_text("utf-8"))
        if _VAGUE_VARIABLE.search(_QUOTED.sub("", tag))
    ]
    assert not vague


def test_pages_call_things_by_their_nouns() -> None:
    """No local, argument or attribute of a page has a name that could be anything."""
    vague = [
        f"{module.place}:{node.lineno}: {name}"
        for place, module in survey().items()
        if place.startswith(("console.web", "console.features"))
        and not place.startswith(_COMMANDS_OF_FEATURES)
        for node, name in _bound_names(module.tree)
        if name in _VAGUE | {"given", "said", "some"}
    ]
    assert not vague


def _bound_names(tree: ast.AST) -> Iterator[tuple[ast.Name | ast.arg, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, node.id


def test_the_engines_docstrings_state() -> None:
    """The docstring of a module of the engine states what the module is; it does not ask."""
    assert not _new("asking docstrings")


# -- closed sets -----------------------------------------------------------------------------------


def test_event_types_are_looked_up_in_their_table() -> None:
    """No code takes the name of an event type apart: ``engine.history.event_types`` has its parts.

    Source of the names: AWS's ``HistoryEventType``.
    """
    assert not _new("pieces of event types")


def test_the_engine_has_no_status_as_a_bare_text() -> None:
    """A status in the engine is a member of a StrEnum."""
    bare = [
        f"{module.place}:{line}: {text}"
        for name, module in survey().items()
        if name.startswith("engine") and module.place not in _CLOSED_SETS
        for line, text in literals(module.tree)
        if text in _STATUSES
    ]
    assert not bare


def test_both_layers_have_one_status_of_an_execution() -> None:
    """A status of the engine means the same in the console, which knows all but NEW."""
    statuses = {status.value for status in ExecutionStatus}
    assert {status.value for status in engine.ExecutionStatus} - statuses == {"NEW"}


# -- sizes -----------------------------------------------------------------------------------------


def test_functions_fit_on_a_screen() -> None:
    """No function has more than 60 lines."""
    assert not _new("long functions")


def test_files_have_one_subject() -> None:
    """No file has more than 700 lines: by then it has two subjects."""
    assert not _new("long files")
