"""Resilience: a page that tests the error handling of a state machine's definition."""
