"""The lists of executions: filters, the search in payloads, saved views, and groups of failures.

``filters`` reads the address, ``scan`` finds the executions, ``verify`` checks what the database
cannot tell by itself.
"""
