"""Run registered Lambda functions in child processes of the server.

``runner.py`` is the program of such a process; it imports only Python's standard library.
"""
