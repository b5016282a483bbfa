"""Test one state with one input: the API's TestState, for the API and for the pages."""

from console.features.test_state.state import try_state

__all__ = ["try_state"]
