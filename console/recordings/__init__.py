"""Recorded executions in memory: parse them, find where they failed, and make tests of them.

Events come from a file, from AWS, or from rows read by the caller: nothing here calls a database or
server. Used by imports, replays, coverage, and ``stateyard test``.
"""
