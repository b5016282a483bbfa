"""Branches: temporary copies of a project, one for each branch of a git repository.

A copy is a project of its own, the *branch*; the copied project is its *parent*.
"""
