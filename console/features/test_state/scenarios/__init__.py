"""Scenarios: recorded executions to run again, read from files, and tests made of them."""
