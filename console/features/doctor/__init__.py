"""Doctor: check a deployment, and what the engine promises of its rows."""
