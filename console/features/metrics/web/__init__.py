"""The charts of executions and server, and the same numbers for Prometheus."""
