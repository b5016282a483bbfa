"""Has every row of the list of what the console must have its browser test?"""

from __future__ import annotations

import pytest

from tests.rows import ROWS, proofs, table

MISSING = {
    "E20": "a state cannot be tried from a page yet",
    "X13": "an execution's page has no activity yet",
    "X14": "nothing is masked yet",
    "X16": "views are not kept on the server yet",
}
"""Rows without a browser test, and why. Whoever adds the test may take the row off."""
FIRST = [row for row, (priority, _) in ROWS.items() if priority <= 1]


@pytest.mark.parametrize("row", FIRST)
def test_each_row_has_a_browser_test(row: str) -> None:
    """Its name begins with the row, or its mark names it."""
    found = [one for one in proofs() if one.row == row and one.in_browser]
    assert found or row in MISSING, f"{row} ({ROWS[row][1]}) has no browser test"


def test_no_test_proves_a_row_that_is_not_there() -> None:
    """A slip in a name or mark would prove nothing."""
    assert {one.row for one in proofs()} <= set(ROWS)
    assert set(MISSING) <= set(FIRST)


def test_the_table_has_a_line_for_each_row() -> None:
    """In the list's order, with the files."""
    lines = table().splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines] == list(ROWS)
    assert "`test_X11_an_execution_is_downloaded_as_a_test`" in table()
