"""Tests of the feature alarms."""
