"""Tell whether any execution can have ended with the error that is searched for.

There are few errors, however many executions ended with them: their names are read from an index
that has them in order, one jump a name. What nobody ever ended with is not looked for among the
executions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from console.models.executions import NAMED
from console.web.search import verify

if TYPE_CHECKING:
    from console.models import Project
    from console.web.search.filters import ExecutionFilters

MOST = 200
"""How many names are read. Errors with numbers in their names have more."""
_NAME = f"SUBSTR(error, 1, {NAMED})"
_FIRST = f"""SELECT {_NAME} FROM console_execution
    WHERE project_id = %s AND error IS NOT NULL AND map_run_id IS NULL {{}}
    ORDER BY {_NAME} LIMIT 1"""
_NAMES = f"""
WITH RECURSIVE found(name) AS (
    SELECT ({_FIRST.format("")})
    UNION ALL
    SELECT ({_FIRST.format(f"AND {_NAME} > found.name")}) FROM found WHERE found.name IS NOT NULL
)
SELECT name FROM found WHERE name IS NOT NULL LIMIT %s
"""


def may_have_error(project: Project, filters: ExecutionFilters) -> bool:
    """Tell whether any execution may have the error; unknown for children and hidden values."""
    if not filters.error or filters.children or verify.reads_masked(project, filters):
        return True
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, [project.pk, project.pk, MOST + 1])
        names = [name for (name,) in cursor.fetchall()]
    return len(names) > MOST or any(_may_hold(name, filters.error) for name in names)


def _may_hold(name: str, text: str) -> bool:
    """Tell whether a database could find the text in an error that begins so."""
    cut = len(name) >= NAMED
    return cut or text.upper() in name.upper() or text.casefold() in name.casefold()
