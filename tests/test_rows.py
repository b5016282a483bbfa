"""Every feature of ``docs/reference/console-features.md`` has its browser test."""

from __future__ import annotations

import pytest

from tests.rows import ROWS, proofs, table

FIRST = [row for row, (priority, _) in ROWS.items() if priority <= 1]


@pytest.mark.parametrize("row", FIRST)
def test_each_row_has_a_browser_test(row: str) -> None:
    """A browser test names each row, at the beginning of its name or by its mark."""
    browser_tests = [proof for proof in proofs() if proof.row == row and proof.in_browser]
    assert browser_tests, f"{row} ({ROWS[row][1]}) has no browser test"


def test_no_test_proves_a_row_that_is_not_there() -> None:
    """A slip in a name or mark would prove nothing."""
    assert {proof.row for proof in proofs()} <= set(ROWS)


def test_the_table_has_a_line_for_each_row() -> None:
    """The printed table has each row, in the list's order, with its files."""
    lines = table().splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines] == list(ROWS)
    assert "`test_X11_an_execution_is_downloaded_as_a_test`" in table()
