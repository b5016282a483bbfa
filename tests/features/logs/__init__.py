"""Tests of the feature logs."""
