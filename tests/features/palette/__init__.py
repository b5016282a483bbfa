"""Tests of the feature palette."""
