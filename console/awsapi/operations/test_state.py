"""TestState: one state with one input, tried without an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console import test_state

if TYPE_CHECKING:
    from console.awsapi.operations.call import Call


def try_state(call: Call) -> dict[str, Any]:
    """TestState."""
    return test_state.try_state(call.principal, call.region, call.params)
