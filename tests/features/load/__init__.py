"""Test load tests."""
