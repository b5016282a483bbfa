"""Lists of executions: filters, search in payloads, and the failures that they find.

``filters`` reads the URL, ``scan`` queries the database, ``verify`` checks what the database cannot
decide.
"""
