"""Targets: where Tasks are sent, and what each Task of a state machine calls."""
