"""Resilience: a page and a command that test the error handling of a definition."""
