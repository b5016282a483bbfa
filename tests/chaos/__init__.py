"""Processes are killed, stopped and cut off, again and again, while executions run.

Commands, each with a seed and sizes, that print one JSON line: ``python -m tests.chaos --help``.
"""
