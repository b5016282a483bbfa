"""Tests of the feature account."""
