"""What happens when processes are killed, stopped and cut off, again and again?

Commands, each with a seed and sizes, that print one JSON line: ``python -m tests.chaos --help``.
"""
