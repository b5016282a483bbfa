"""Pause: executions that take no step until somebody resumes them."""
