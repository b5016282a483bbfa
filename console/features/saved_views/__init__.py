"""Saved views: filters of lists of executions, stored under a name for a project."""
