"""Tests of the targets that owners set on pages."""
