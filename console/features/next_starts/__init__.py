"""Breakpoints and faults for the next starts of a state machine."""
