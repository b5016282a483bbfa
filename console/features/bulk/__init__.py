"""The bulk actions: a dry run over many executions, then a job with its progress."""
