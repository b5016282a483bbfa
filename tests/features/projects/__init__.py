"""Tests of the feature projects."""
