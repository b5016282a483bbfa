"""Build a ``Machine`` from the parsed JSON of a definition, and collect its problems on the way.

A part with a problem is still built as well as possible, so its inside is checked, too. A machine
with errors is never handed out (``engine.language``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.language import fields, transitions
from engine.language.diagnostics import DiagnosticCode, Problems
from engine.language.model import Block, Machine, QueryLanguage, State
from engine.language.node import DefinitionNode
from engine.language.roots import check_roots
from engine.language.scopes import assigned_names, check_scopes
from engine.language.states import BUILDERS
from engine.language.wording import one_missing, only_one_of, wrong_language

if TYPE_CHECKING:
    from engine.data.expression import Json

_MAX_NAME = 80
_MAX_NESTING = 60
_MAX_LABEL = 40
_NOT_IN_LABELS = re.compile(r"[\s?*<>{}\[\]:;,\\|^~$#%&\"`\x00-\x1f\x7f-\x9f\ufffe\uffff]")


@dataclass
class Builder:
    """The state of building: the facts about the whole machine so far.

    ``names``: the state names so far; ``labels``: the labels of distributed Maps; ``depth``: the
    nesting of the current block; ``outer``: the variables assigned by the blocks around it.
    """

    problems: Problems
    express: bool
    language: QueryLanguage = QueryLanguage.JSONPATH
    names: set[str] = field(default_factory=set)
    labels: list[str] = field(default_factory=list)
    activities: set[str] = field(default_factory=set)
    depth: int = 0
    outer: frozenset[str] = frozenset()
    express_child: bool = False

    # -- the machine -------------------------------------------------------------------------------

    def machine(self, value: dict[str, Json], text: str) -> Machine:
        """Build the top level."""
        node = DefinitionNode(value, "", QueryLanguage.JSONPATH, self.problems)
        self._unknown(node, fields.MACHINE)
        self.language = self._language(node, QueryLanguage.JSONPATH)
        node.one_of("Version", ("1.0",))
        block = self.block(node)
        return Machine(
            block=block,
            text=text,
            language=self.language,
            comment=node.text("Comment"),
            timeout_seconds=node.number("TimeoutSeconds", 1),
            labels=tuple(self.labels),
            activities=tuple(sorted(self.activities)),
        )

    def _unknown(self, node: DefinitionNode, allowed: tuple[str, ...]) -> None:
        for name in node.value:
            if name in allowed:
                continue
            message = f"Field '{name}' is not supported"
            if name == "QueryLanguage":  # earlier releases took it in blocks, without an effect
                node.newer_error("", message)
            else:
                node.error("", message)

    def _language(self, node: DefinitionNode, inherited: QueryLanguage) -> QueryLanguage:
        if not node.has("QueryLanguage"):
            return inherited
        node.one_of("QueryLanguage", ("JSONPath", "JSONata"))
        # A value that is neither counts as JSONata for the checks that follow [measured].
        path = node.get("QueryLanguage") == "JSONPath"
        return QueryLanguage.JSONPATH if path else QueryLanguage.JSONATA

    # -- blocks ------------------------------------------------------------------------------------

    def block(self, node: DefinitionNode) -> Block:
        """Build ``StartAt`` and ``States`` of a machine, branch or item processor."""
        missing = [name for name in ("States", "StartAt") if not node.has(name)]
        if missing:
            node.error("", f"These fields are required: [{', '.join(missing)}]")
        start = node.text("StartAt")
        states = node.child("States")
        if states is None:
            return Block(start or "", {})
        if not states.value:
            node.error("States", "Value cannot be empty")
        around = self.outer
        check_scopes(states.value, states.pointer, around, self.problems)
        self.outer = around | assigned_names(states.value)
        built = {name: self._named(states, name) for name in states.value}
        self.outer = around
        transitions.check_block(node.value, node.pointer, self.problems)
        return Block(
            start or "", {name: state for name, state in built.items() if state is not None}
        )

    def _named(self, states: DefinitionNode, name: str) -> State | None:
        pointer = states.at(name)
        if not 1 <= len(name) <= _MAX_NAME:
            wrong = f"exceeds the {_MAX_NAME}-character limit allowed by the service"
            message = f"Invalid State name: State '{name}' {wrong if name else 'is empty'}."
            self.problems.error(pointer, message, DiagnosticCode.INVALID_STATE_NAME)
        if name in self.names:
            # ASL: names "must be unique within the scope of the whole state machine" [measured].
            message = f"Duplicate State name: {name}"
            self.problems.newer_error(pointer, message, DiagnosticCode.DUPLICATE_STATE)
        self.names.add(name)
        value = states.get(name)
        if not isinstance(value, dict):
            self.problems.error(pointer, "Expected value of type Object")
            return None
        return self.state(DefinitionNode(value, pointer, self.language, self.problems), name)

    def nested(self, node: DefinitionNode, allowed: tuple[str, ...]) -> Block:
        """Build a branch or item processor."""
        if self.depth >= _MAX_NESTING:
            message = f"Nested deeper than {_MAX_NESTING} levels"
            self.problems.error(node.pointer, message, DiagnosticCode.TOO_DEEP)
            return Block("", {})
        self._unknown(node, allowed)
        # The limit keeps a hostile definition from exhausting Python's stack: reading recurses.
        self.depth += 1
        around = self.outer, self.express_child
        config = node.get("ProcessorConfig")
        if isinstance(config, dict) and config.get("Mode") == "DISTRIBUTED":
            self.outer = frozenset()
            self.express_child |= config.get("ExecutionType") == "EXPRESS"
        block = self.block(node)
        self.outer, self.express_child = around
        self.depth -= 1
        return block

    # -- states ------------------------------------------------------------------------------------

    def state(self, node: DefinitionNode, name: str) -> State | None:
        """Build one state; return None if its type is unknown."""
        kind = node.get("Type")
        if not node.has("Type"):
            node.error("", "These fields are required: [Type]")
            return None
        if kind not in fields.TYPES:
            values = ", ".join(fields.TYPES)
            node.error("Type", f"The field 'Type' should have one of these values: [{values}]")
            return None
        language = self._language(node, self.language)
        # A machine may move to JSONata state by state, but not back: ASL allows the default
        # JSONPath with single JSONata states only.
        if self.language is QueryLanguage.JSONATA and language is QueryLanguage.JSONPATH:
            message = (
                "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine"
            )
            node.error("", message)
        node = DefinitionNode(node.value, node.pointer, language, node.problems)
        self._check_fields(node, kind)
        if node.jsonata:
            check_roots(node)
        state: State = BUILDERS[kind](self, node, name)
        return state

    def _check_fields(self, node: DefinitionNode, kind: str) -> None:
        for name in node.value:
            allowed = fields.is_allowed(kind, name, node.language)
            if allowed is False:
                node.error("", f"Field '{name}' is not supported")
            elif allowed is None:
                node.error("", wrong_language(name, node.language))
        missing = [name for name in fields.REQUIRED.get(kind, ()) if not node.has(name)]
        if missing:
            node.error("", f"These fields are required: [{', '.join(missing)}]")
        for group in fields.EXCLUSIVE.get(kind, ()):
            if sum(node.has(name) for name in group) > 1:
                node.error("", only_one_of(group))
        if "Next" in fields.FIELDS[kind]:
            _check_transition(node)

    def label(self, node: DefinitionNode) -> str | None:
        """Read the Label of a distributed Map."""
        label = node.text("Label")
        if label is None:
            return None
        if len(label) > _MAX_LABEL:
            wrong = f"exceeds the {_MAX_LABEL}-character limit allowed by the service"
        else:
            wrong = "has to have characters, and neither blanks nor special ones"
        if not 1 <= len(label) <= _MAX_LABEL or _NOT_IN_LABELS.search(label):
            message = f"Invalid Label name: Label '{label}' {wrong}."
            self.problems.error(node.at("Label"), message, DiagnosticCode.INVALID_LABEL)
        if label in self.labels:
            message = f"Duplicate Label name: {label}"
            self.problems.error(node.at("Label"), message, DiagnosticCode.DUPLICATE_LABEL)
        self.labels.append(label)
        return label


def _check_transition(node: DefinitionNode) -> None:
    # "End": false is legal beside Next, and does not end the line of control.
    following, end = node.has("Next"), node.has("End")
    if following:
        node.text("Next")
    if end and not isinstance(node.get("End"), bool):
        node.error("End", "Expected value of type Boolean")
    ends = node.get("End") is True
    if following and ends:
        node.error("", only_one_of(("Next", "End")))
    elif not following and not ends:
        node.error("", one_missing(("Next", "End")))


def build(value: Any, text: str, *, express: bool, problems: Problems) -> Machine | None:
    """Build the machine of a parsed definition; return None if the value is not an object."""
    if not isinstance(value, dict):
        problems.error("", "Definition must be a valid JSON object")
        return None
    return Builder(problems, express).machine(value, text)
