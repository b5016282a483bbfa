"""Read state machines from files of other tools: one module a format."""
