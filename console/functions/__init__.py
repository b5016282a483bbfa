"""Run registered functions in processes of their own.

``runner.py`` is what such a process runs: it imports nothing but Python's own library.
"""
