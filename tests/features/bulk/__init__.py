"""Tests of the feature bulk."""
