"""Targets and functions that owners set for their project on pages."""
