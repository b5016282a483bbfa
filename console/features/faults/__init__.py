"""Faults: errors and latency that are injected into one execution."""
