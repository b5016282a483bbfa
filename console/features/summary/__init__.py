"""Summaries: one line about each execution, computed by a JSONata expression in a tag."""
