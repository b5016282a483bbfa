"""Tests of the feature compare."""
