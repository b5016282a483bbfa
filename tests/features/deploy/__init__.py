"""Tests of the feature deploy."""
