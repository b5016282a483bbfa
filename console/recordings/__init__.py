"""Recorded executions in memory: parse them, list their calls, and find where they failed.

Events come from a file, from AWS, or from rows read by the caller: nothing here calls a database or
server. Used by imports, reproductions and scenarios.
"""
