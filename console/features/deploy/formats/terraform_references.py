"""Find what the unknown fields of a Terraform plan refer to, in the plan's configuration.

Values such as an ARN are known after apply. The configuration has the addresses that an expression
names, relative to its module and without the values of locals and loops.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_INDEX = re.compile(r"\[[^\]]*\]")
_MODULE = re.compile(r"module\.([^.\[]+)(\[[^\]]*\])?\.")
_OPAQUE = "?"
"""Begins a reference whose resource the configuration does not tell, such as a local."""
_ELSEWHERE = ("local.", "each.", "count.", "data.", "var.")
_OUTPUT_PARTS = 3
_DEEPEST = 50


@dataclass(frozen=True)
class _Module:
    """A module of the configuration. ``arguments``: the expressions of its call, in ``outer``."""

    said: Mapping[str, Any]
    prefix: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outer: _Module | None = None

    def called(self, name: str) -> _Module:
        """Return a called module, an empty one for an unknown name."""
        call = _object(_object(self.said.get("module_calls")).get(name))
        prefix = f"{self.prefix}module.{name}."
        return _Module(_object(call.get("module")), prefix, _object(call.get("expressions")), self)

    def references(self, expression: Any, depth: int = 0) -> list[str]:
        """Return the addresses in an expression, through variables and outputs of modules."""
        if depth > _DEEPEST:
            return [_OPAQUE]
        addresses: list[str] = []
        for each in map(str, _list(_object(expression).get("references"))):
            parts = each.split(".")
            if parts[0] == "var" and self.outer is not None and parts[1] in self.arguments:
                addresses += self.outer.references(self.arguments[parts[1]], depth + 1)
            elif parts[0] == "module" and len(parts) >= _OUTPUT_PARTS:
                module = self.called(_INDEX.sub("", parts[1]))
                output = _object(_object(module.said.get("outputs")).get(parts[2]))
                inner = module.references(output.get("expression"), depth + 1)
                addresses += inner or [_OPAQUE + each]
            elif each.startswith(_ELSEWHERE):
                addresses.append(_OPAQUE + each)
            else:
                addresses.append(self.prefix + each)
        return addresses


class PlannedReferences:
    """The references of a plan's configuration; none for a state, whose values are all known."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Read the configuration of ``terraform show -json``."""
        self._fields: dict[str, list[str]] = {}
        configuration = _object(document.get("configuration"))
        self._read(_Module(_object(configuration.get("root_module"))))

    def has(self, address: str, name: str) -> bool:
        """Return whether a field of a resource has an expression with references."""
        return bool(self._fields.get(f"{_family(address)}.{name}"))

    def refers(self, address: str, name: str, other: str) -> bool | None:
        """Return whether a field refers to another resource; None: only the apply knows it."""
        references = self._fields.get(f"{_family(address)}.{name}", [])
        family = _family(other)
        named = [each for each in references if _is_part(each, family)]
        if not named:
            return None if any(each.startswith(_OPAQUE) for each in references) else False
        if not _same_instances(address, other):
            return False
        if any(each.startswith(f"{family}[") for each in named):
            exact = _MODULE.sub(lambda match: f"module.{match[1]}.", other)
            return any(each == exact or each.startswith(f"{exact}.") for each in named)
        if not _index_of(other):
            return True
        if {f"{_OPAQUE}each.key", f"{_OPAQUE}count.index"} & {*references}:
            return _index_of(address) == _index_of(other)
        return None

    def _read(self, module: _Module) -> None:
        """Add the fields of a module and of the modules that it calls."""
        for resource in map(_object, _list(module.said.get("resources"))):
            for name, expression in _object(resource.get("expressions")).items():
                address = f"{module.prefix}{resource.get('address')}.{name}"
                self._fields[address] = module.references(expression)
        for name in _object(module.said.get("module_calls")):
            self._read(module.called(name))


def _family(address: str) -> str:
    """Return an address without indexes, as the configuration has it."""
    return _INDEX.sub("", address)


def _index_of(address: str) -> str:
    """Return the index of a resource in its own family, "" without one."""
    index = _INDEX.search(_MODULE.sub("", address))
    return index[0] if index else ""


def _is_part(reference: str, family: str) -> bool:
    return reference == family or reference.startswith((f"{family}.", f"{family}["))


def _same_instances(address: str, other: str) -> bool:
    """Return whether two addresses lie in the same instance of each module that they share."""
    calls = zip(_MODULE.findall(address), _MODULE.findall(other), strict=False)
    for (name, index), (other_name, other_index) in calls:
        if name != other_name:
            return True
        if index != other_index:
            return False
    return True


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
