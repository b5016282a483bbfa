"""What tests of pages share."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from console.models import Execution

CHAIN = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Pass", "Result": {"n": 1}, "Next": "Nap"},
        "Nap": {"Type": "Wait", "Seconds": 3600, "End": True},
    },
}
MARKUP = "<script>alert(1)</script>"


def text(response: Any, status: int = 200) -> str:
    """Return what a page says, after checking its status."""
    assert response.status_code == status, response.content[:500]
    return unescape(response.content.decode())


def markup(response: Any, status: int = 200) -> str:
    """Return the HTML of a page without the white space between and beside its tags."""
    shown = re.sub(r"\s+", " ", text(response, status))
    return re.sub(r" ?(<[^>]*?) ?(/?>) ?", r"\1\2", shown)


def page(execution: Execution, query: str = "") -> str:
    """Return the address of an execution's page."""
    machine = execution.state_machine_arn.rpartition(":")[2]
    return f"/machines/{machine}/executions/{execution.name}/{query}"


def steps_page(execution: Execution, query: str = "") -> str:
    """Return the address at which an execution's steps are a table; ``query``: with its ``?``."""
    return page(execution, f"?{query[1:]}&view=steps")


def timeline_page(execution: Execution, query: str = "") -> str:
    """Return the address at which an execution's steps are bars; ``query``: with its ``?``."""
    return page(execution, f"?{query[1:]}&view=timeline")
