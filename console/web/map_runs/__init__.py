"""The page of a Map Run: its counts, its child executions, and the settings that can change."""
