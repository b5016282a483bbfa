"""The timeline of an execution: its axis with idle time folded, and the bars of its states."""
