"""The commands ``pause``, ``resume`` and ``status``."""
