"""The commands ``fetch`` and ``test``."""
