"""Shared parts of all pages: scope of a request, rights, addresses, formatting, errors.

This package imports no other package of the pages; all others import from it.
"""
