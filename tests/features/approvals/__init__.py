"""Tests of the feature approvals."""
