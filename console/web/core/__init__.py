"""Shared parts of all pages: scope of a request, rights, addresses, formatting, errors.

This package imports no other package of the pages; all others import from it.
"""

from django.urls import register_converter

from console.web.core.numbers import NumberConverter

register_converter(NumberConverter, "number")  # before any module of addresses is read
