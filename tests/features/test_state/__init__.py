"""Tests of the feature test_state."""
