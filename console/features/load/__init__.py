"""Load tests: starts at a constant rate, their latency, and the limits that they reach."""
