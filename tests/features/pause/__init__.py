"""Tests of the feature pause."""
