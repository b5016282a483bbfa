"""Doctor: check a deployment, and the invariants of the engine's rows."""
