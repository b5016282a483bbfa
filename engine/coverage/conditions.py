"""Find values for which a Choice takes a given rule, to suggest a test (``suggesting``).

A rule is a tree of And, Or and Not over comparisons of one value with a constant. Rules are tried
in order, so the values must satisfy one rule and no earlier rule. The search keeps, for each
*place* (the path of a value in the input or a variable), the candidates that pass all comparisons
so far, and gives up when none is left. JSONata conditions of the same kind are converted to the
same trees; others are ignored, so a solution must be verified by a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from jsonata.jexception import JException

from engine.data.expression import ABSENT
from engine.data.jsonata import CLOSE, OPEN
from engine.data.jsonata_syntax import thread_parser
from engine.data.path_parser import read_selectors
from engine.data.path_syntax import PathSyntaxError
from engine.data.paths import is_reference_path
from engine.data.selectors import IndexSelector, NameSelector
from engine.language.choice import COMPARISONS, TYPE_TESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Place = tuple[str | int, ...]
"""The path of a value: first the name of a variable or "" for the input, then member names."""
_ORDINARY: tuple[Any, ...] = ("example", 1, True, False, None, [], {}, ABSENT)
_SAMPLES = {"String": "m", "Numeric": 10, "Boolean": True, "Timestamp": "2030-01-01T00:00:00Z"}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b and isinstance(a, bool) is isinstance(b, bool),
    "!=": lambda a, b: not (a == b and isinstance(a, bool) is isinstance(b, bool)),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Atom:
    """A comparison of one value.

    ``test``: returns None for an error; ``hints``: values that pass and that fail it. ``beside``:
    for a comparison of two values, the other place and the value it must have.
    """

    place: Place
    test: Callable[[Any], bool | None]
    hints: tuple[Any, ...]
    beside: tuple[Place, Any] | None = None


@dataclass(frozen=True, slots=True)
class Junction:
    """An And, Or or Not of conditions. ``parts``: None for each unsupported part."""

    word: str
    parts: tuple[Condition | None, ...]


Condition = Atom | Junction
_Goals = tuple[tuple[Condition | None, bool], Any] | None
"""A linked list: a condition with its expected result, and the rest."""
_Values = dict[Place, list[Any]]
_MOST_STEPS = 20_000
"""Steps of a search: contradictions of many alternatives would take for ever."""


@dataclass(frozen=True, slots=True)
class ChoiceRules:
    """The rules of a Choice. ``candidates``: place -> the values to try."""

    conditions: Sequence[Condition | None]
    candidates: Mapping[Place, Sequence[Any]]

    def solve(self, way: int | None) -> Iterator[dict[Place, Any]]:
        """Yield values for which the Choice takes a rule; None means its Default."""
        goals: _Goals = None
        for condition in reversed(self.conditions if way is None else self.conditions[:way]):
            goals = ((condition, False), goals)
        if way is not None:
            if self.conditions[way] is None:
                return
            goals = ((self.conditions[way], True), goals)  # first: it leaves the fewest values
        for values in self._search(goals):
            yield {place: passing[0] for place, passing in values.items()}

    def _search(self, goals: _Goals) -> Iterator[_Values]:
        """Yield the passing values, for each way to satisfy all goals."""
        stack: list[tuple[_Goals, _Values]] = [(goals, {})]
        for _ in range(_MOST_STEPS):
            if not stack:
                return
            goals, values = stack.pop()
            if goals is None:
                yield values
                continue
            (condition, expected), rest = goals
            if condition is None:
                stack.append((rest, values))
            elif isinstance(condition, Atom):
                passing = self._filtered(values, condition, expected=expected)
                if passing is not None:
                    stack.append((rest, passing))
            else:
                stack += [(more, values) for more in _split(condition, rest, expected=expected)]

    def _filtered(self, values: _Values, atom: Atom, *, expected: bool) -> _Values | None:
        """Return the candidates that also pass a test; None if a place has none left."""
        passing = dict(values)
        tests: list[tuple[Place, Callable[[Any], bool]]] = [
            (atom.place, lambda value: atom.test(value) is expected)
        ]
        if atom.beside is not None:
            other, sample = atom.beside
            tests.append((other, lambda value: bool(value == sample)))
        for place, test in tests:
            tried = passing[place] if place in passing else self._values(place)
            passing[place] = [value for value in tried if test(value)]
        return passing if all(passing[place] for place, _ in tests) else None

    def _values(self, place: Place) -> Sequence[Any]:
        return (*self.candidates.get(place, ()), *_ORDINARY)


def read_choice(state: Mapping[str, Any]) -> ChoiceRules:
    """Return the rules of a Choice."""
    prefix = read_place(state.get("InputPath", "$")) or ("",)
    conditions = [read_condition(rule, prefix) for rule in state["Choices"]]
    candidates: dict[Place, list[Any]] = {}
    for atom in (atom for condition in conditions for atom in _atoms(condition)):
        candidates.setdefault(atom.place, []).extend(atom.hints)
        if atom.beside is not None:
            candidates.setdefault(atom.beside[0], []).append(atom.beside[1])
    return ChoiceRules(conditions, candidates)


def _atoms(condition: Condition | None) -> Iterator[Atom]:
    if isinstance(condition, Atom):
        yield condition
    elif condition is not None:
        for part in condition.parts:
            yield from _atoms(part)


def _split(junction: Junction, rest: _Goals, *, expected: bool) -> list[_Goals]:
    """Return the goals that replace a junction; the last alternative is tried first."""
    first, *more = junction.parts
    if junction.word == "Not":
        return [((first, not expected), rest)]
    others: _Goals = rest
    if more:
        others = ((replace(junction, parts=tuple(more)), expected), rest)
    if (junction.word == "And") is expected:
        return [((first, expected), others)]
    # parts are evaluated in order, up to the deciding part
    decided: _Goals = ((first, expected), rest)
    return [((first, not expected), others), decided] if more else [decided]


# -- rules -----------------------------------------------------------------------------------------


def read_condition(rule: Mapping[str, Any], prefix: Place) -> Condition | None:
    """Return a rule's condition, None if unsupported. ``prefix``: the path of InputPath."""
    if "Condition" in rule:
        return _read_jsonata(rule["Condition"])
    for word in ("And", "Or"):
        if word in rule:
            return Junction(word, tuple(read_condition(part, prefix) for part in rule[word]))
    if "Not" in rule:
        return Junction("Not", (read_condition(rule["Not"], prefix),))
    place = read_place(rule.get("Variable", ""), prefix)
    if place is None:
        return None
    if "IsPresent" in rule:
        expected = rule["IsPresent"]
        return Atom(place, lambda value: (value is not ABSENT) is expected, ("example", ABSENT))
    for name, test in TYPE_TESTS.items():
        if name in rule:
            return Atom(place, _against(test, rule[name]), (_SAMPLES["Timestamp"],))
    return _read_comparison(rule, place, prefix)


def _read_comparison(rule: Mapping[str, Any], place: Place, prefix: Place) -> Atom | None:
    for name, test in COMPARISONS.items():
        if name in rule:
            return Atom(place, _against(test, rule[name]), _hints(name, rule[name]))
        if f"{name}Path" in rule:
            other = read_place(rule[f"{name}Path"], prefix)
            sample = next(value for word, value in _SAMPLES.items() if name.startswith(word))
            if other is None:
                return None
            return Atom(place, _against(test, sample), _hints(name, sample), (other, sample))
    return None


def _against(test: Callable[[Any, Any], bool], constant: Any) -> Callable[[Any], bool | None]:
    """Return the comparison with a constant; a missing value is an error."""
    return lambda value: None if value is ABSENT else test(value, constant)


def _hints(name: str, constant: Any) -> tuple[Any, ...]:
    """Return values that pass and fail a comparison."""
    if name == "StringMatches":
        return (constant.replace("*", "x"), constant.replace("*", ""), "other")
    if name.startswith("Timestamp"):
        moment = datetime.fromisoformat(constant)
        hour = timedelta(hours=1)
        near = ((moment + step).strftime("%Y-%m-%dT%H:%M:%SZ") for step in (hour, -hour))
        return (constant, *near)
    return _near(constant)


def _near(constant: Any) -> tuple[Any, ...]:
    """Return a constant and values on both sides of it."""
    if isinstance(constant, bool):
        return (constant, not constant)
    if isinstance(constant, int | float):
        return (constant, constant + 1, constant - 1)
    if isinstance(constant, str):
        return (constant, f"{constant}x", constant[:-1])
    return (constant,)


def read_place(path: Any, prefix: Place = ("",)) -> Place | None:
    """Return the place of a Reference Path; None for other paths or the context object."""
    if not isinstance(path, str) or path.startswith("$$") or not is_reference_path(path):
        return None
    head, at = path[1:], len(path)
    for mark in ".[":
        if mark in head:
            at = min(at, head.index(mark))
    name, rest = head[:at], head[at:]
    try:
        selectors = read_selectors(rest)
    except PathSyntaxError:
        return None
    members: list[str | int] = []
    for selector in selectors:
        if isinstance(selector, NameSelector):
            members.append(selector.name)
        elif isinstance(selector, IndexSelector) and selector.index >= 0:
            members.append(selector.index)
        else:
            return None
    return (*((name,) if name else prefix), *members)


# -- JSONata ---------------------------------------------------------------------------------------


def _read_jsonata(text: Any) -> Condition | None:
    """Return the condition of a JSONata text between its marks; None for a bare boolean."""
    if not isinstance(text, str):
        return None
    try:
        tree = thread_parser().parse(text.strip().removeprefix(OPEN).removesuffix(CLOSE).strip())
    except JException:
        return None
    return _read_tree(tree)


def _read_tree(tree: Any) -> Condition | None:
    if tree.type == "block" and len(tree.expressions) == 1:
        return _read_tree(tree.expressions[0])
    if tree.type == "binary" and tree.value in ("and", "or"):
        parts = (_read_tree(tree.lhs), _read_tree(tree.rhs))
        return Junction(tree.value.capitalize(), parts)
    if tree.type == "binary":
        return _read_operator(tree)
    if tree.type == "function":
        return _read_function(tree)
    place = tree_place(tree)
    if place is None:
        return None
    return Atom(place, lambda value: value if isinstance(value, bool) else None, (True, False))


def _read_operator(tree: Any) -> Atom | None:
    sides, sign = (tree.lhs, tree.rhs), tree.value
    if sign == "in":
        return _read_membership(tree)
    if sign not in _OPERATORS:
        return None
    if _is_literal(sides[0]):
        sides, sign = (sides[1], sides[0]), _MIRRORED.get(sign, sign)
    if not _is_literal(sides[1]):
        return None
    constant, test = _literal(sides[1]), _OPERATORS[sign]
    counted = _argument_of(sides[0], "count")
    place = tree_place(counted if counted is not None else sides[0])
    if place is None:
        return None
    if counted is not None and isinstance(constant, int):
        sizes = (constant, constant + 1, max(constant - 1, 0))
        return Atom(
            place,
            lambda value: test(len(value), constant) if isinstance(value, list) else None,
            tuple([{}] * size for size in sizes),
        )
    return Atom(place, lambda value: _compare(value, test, constant, sign), _near(constant))


def _compare(value: Any, test: Callable[[Any, Any], bool], constant: Any, sign: str) -> bool | None:
    if value is ABSENT:
        return None if sign not in ("=", "!=") else sign == "!="
    if sign in ("=", "!="):
        return test(value, constant)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (value, constant))
    texts = isinstance(value, str) and isinstance(constant, str)
    return test(value, constant) if numbers or texts else None


def _read_membership(tree: Any) -> Atom | None:
    place, items = tree_place(tree.lhs), getattr(tree.rhs, "expressions", None)
    if place is None or tree.rhs.value != "[" or not all(map(_is_literal, items or ())):
        return None
    values = [_literal(item) for item in items or ()]
    return Atom(place, lambda value: value in values, (*values, "other"))


def _read_function(tree: Any) -> Condition | None:
    negated = _argument_of(tree, "not")
    if negated is not None:
        return Junction("Not", (_read_tree(negated),))
    asked = _argument_of(tree, "exists")
    place = tree_place(asked) if asked is not None else None
    if place is None:
        return None
    return Atom(place, lambda value: value is not ABSENT, ("example", ABSENT))


def _argument_of(tree: Any, name: str) -> Any:
    """Return the only argument of a call of a function, None for anything else."""
    called = tree.type == "function" and tree.procedure.type == "variable"
    if not called or tree.procedure.value != name or len(tree.arguments) != 1:
        return None
    return tree.arguments[0]


def _is_literal(tree: Any) -> bool:
    return tree.type in ("number", "string", "value")


def _literal(tree: Any) -> Any:
    simple = isinstance(tree.value, str | int | float | bool)
    return tree.value if simple else None


def tree_place(tree: Any) -> Place | None:
    """Return the place of ``$states.input.a.b`` or ``$total.a``; None for other expressions."""
    steps = tree.steps if tree.type == "path" else [tree]
    plain = all(
        step.type in ("variable", "name") and not getattr(step, "stages", None) for step in steps
    )
    if not plain or steps[0].type != "variable":
        return None
    names = [step.value for step in steps]
    if names[0] != "states":
        return tuple(names)
    return ("", *names[2:]) if names[1:2] == ["input"] else None


def expression_place(text: Any) -> Place | None:
    """Return the place that a JSONata text such as ``{% $states.input.items %}`` reads."""
    if not isinstance(text, str) or not text.startswith(OPEN):
        return None
    try:
        return tree_place(thread_parser().parse(text[len(OPEN) : -len(CLOSE)].strip()))
    except JException:
        return None
