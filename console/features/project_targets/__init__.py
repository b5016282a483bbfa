"""Targets and functions of a project that its owners set on pages."""
