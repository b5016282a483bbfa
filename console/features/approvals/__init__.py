"""Approvals: links by which people without an account answer a task."""
