"""Doctor: check what the engine promises of its rows."""
