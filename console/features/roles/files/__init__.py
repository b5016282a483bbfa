"""Roles of files and projects: their policies, and the checks of ``lint`` and ``deploy``."""
