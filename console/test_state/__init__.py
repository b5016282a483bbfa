"""What does one state do with one input?  The API's TestState, for the API and for the pages."""

from console.test_state.state import try_state

__all__ = ["try_state"]
