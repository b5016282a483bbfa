"""The reading of an execution's history: its events as a table, by visit, and folded to traces."""
