"""Branches: a project for each branch of a repository, a copy of its parent for some days."""
