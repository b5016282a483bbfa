"""Bulk actions: apply one action to many executions, after a dry run, as a job with progress."""
