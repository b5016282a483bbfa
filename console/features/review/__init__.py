"""Review: report what changes in the state machines of a pull request, for a comment."""
