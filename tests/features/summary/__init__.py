"""Tests of the feature summary."""
