"""Tests of the feature editor."""
