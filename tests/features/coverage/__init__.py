"""Tests of the feature coverage."""
