"""The timeline of an execution: a time axis with idle time folded, and a bar per step."""
