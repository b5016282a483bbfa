"""Tests of the feature metrics."""
