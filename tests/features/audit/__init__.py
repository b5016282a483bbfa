"""Tests of the feature audit."""
