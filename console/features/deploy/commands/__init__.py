"""The commands ``lint``, ``deploy``, ``pull`` and ``export``."""
