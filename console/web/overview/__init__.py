"""The overview page: running executions, recent failures, latest state machines."""
