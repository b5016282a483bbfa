"""Recorded answers of the real service, replayed: in memory and through the API.

The cases and their runner lie beside the repository (``STEPYARD_SHARED``/conformance); without
them these tests are not collected.
"""
