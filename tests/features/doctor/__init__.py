"""Tests of the feature doctor."""
