"""Tests of the feature review."""
