"""Approvals: links with which people without an account answer a task."""
