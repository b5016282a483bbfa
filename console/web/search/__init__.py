"""Lists of executions: filters, search in payloads, saved views, groups of failures.

``filters`` reads the URL, ``scan`` queries the database, ``verify`` checks what the database cannot
decide.
"""
