"""Resilience: the page of the resilience report of a state machine."""
