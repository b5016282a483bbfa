"""Tests of the feature access_keys."""
