"""The chaos suite kills, stops and cuts off processes while executions run.

Commands, each with a seed and sizes, that print one JSON line: ``python -m tests.chaos --help``.
"""
