"""Tests of the feature notifications."""
