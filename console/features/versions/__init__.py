"""Versions: versions, aliases and revisions of a state machine, and the diff of two of them."""
