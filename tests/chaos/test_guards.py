"""The guards of the store are where the check ``guards`` looks for them."""

from __future__ import annotations

import ast

import pytest

from tests.acceptance.server import ROOT
from tests.chaos.guards import GUARDS, Guard

MARKS = {"sqlite": "postgres_only", "postgres": "sqlite_only"}


def by_name(guard: Guard) -> str:
    """Return the name of a test's guard."""
    return guard.name


def test_each_has_a_name_of_its_own() -> None:
    """The report has a line for each."""
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)


@pytest.mark.parametrize("guard", GUARDS, ids=by_name)
def test_it_stands_in_its_files_and_can_be_taken_out(guard: Guard) -> None:
    """Once in each, and what is left is a program: else a check would fail of something else."""
    assert guard.files
    for name in guard.files:
        text = (ROOT / name).read_text(encoding="utf-8")
        rest = guard.without(text)
        assert rest != text
        compile(rest, name, "exec")


@pytest.mark.parametrize("guard", GUARDS, ids=by_name)
def test_its_checks_are_there(guard: Guard) -> None:
    """The file, the test in it if one is named, and for the database that it is run on."""
    assert guard.checks
    for database, check in guard.checks.items():
        assert database in MARKS
        place, _, name = check.partition("::")
        body = ast.parse((ROOT / place).read_text(encoding="utf-8")).body
        marks = [ast.unparse(node) for node in body if isinstance(node, ast.Assign)]
        assert not [each for each in marks if f"pytest.mark.{MARKS[database]}" in each]
        functions = [node for node in body if isinstance(node, ast.FunctionDef)]
        tests = {function.name for function in functions if function.name.startswith("test_")}
        assert (name in tests) if name else tests


def test_one_that_has_moved_is_an_error() -> None:
    """It is not taken for one that a check has caught."""
    with pytest.raises(ValueError, match="got 0 times"):
        GUARDS[0].without("another text")
