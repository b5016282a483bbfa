"""Recorded answers of the real service, replayed: in memory and through the API.

The cases and their runner lie outside of the repository (``STATEYARD_SHARED``/conformance). Without
them pytest does not collect these tests. README.md says what they are and where they come from.
"""
